"""Func -> Func transformations: differentiation and optimisation, one pass per file."""
