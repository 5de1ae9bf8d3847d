"""Memory: which buffer every value lies in, what is updated in place, where copies are needed.

In: a fused Func. Out: the same with a plan, ready for `codegen`.
"""
