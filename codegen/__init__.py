"""From a Func to native code: kernels, vector math, matrix products, entry points.

In: a planned `Func` and a `Target`. Out: native code that takes arrays (`native.Native`), or files (`export`). Called by `runtime`, through
`program.py`; `compile.py` is the way from a Func to object code.
"""
