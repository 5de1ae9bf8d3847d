"""Less to compute: constant folding, algebraic rules, common subexpressions, dead code, and what is known about integers.

In and out: a Func. The first part of the pipeline.
"""
