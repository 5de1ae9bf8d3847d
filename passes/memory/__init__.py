"""Memory: which buffer holds each value, what is updated in place, and where copies are needed.

Input: a fused Func. Output: the same with a plan, ready for `codegen`.
"""
