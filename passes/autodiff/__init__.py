"""Derivatives as passes: reverse and forward mode through statements and regions, and what the backward pass stores or recomputes.

Input: a traced Func. Output: the same Func with adjoint statements. Called by the tape and the transforms of `runtime`.
"""
