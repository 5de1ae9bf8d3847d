"""Simplification: constant folding, algebraic rules, common subexpressions, dead code, and integer bounds.

Input and output: a Func. The first part of the pipeline.
"""
