"""Func -> Func: differentiation and optimisation, one pass a file."""
