"""Transformations of the IR: differentiation and optimisation, one pass per file.

In: a traced `Func`. Out: an equivalent `Func`, with derivatives, or planned and ready for `codegen`. Called by `runtime`; `pipeline.py`
lists the passes in order.
"""
