"""Derivatives as passes: reverse and forward mode through statements and regions, and what the backward pass keeps or recomputes.

In: a Func as traced. Out: the same with adjoint statements. The tape and the transforms of `runtime` call it.
"""
