"""The loop IR: what a kernel does, as data, between the planned IR and LLVM's text.

In: the domain of a kernel, its accesses, and what is computed for each element. Out: a `LoopProgram` (`ir.py`), made by the modules that
decide (`nest.py`, `tiles.py`, `boxes.py`, `chunks.py`; `products/contraction.py` for contractions), printed by `printer.py`, checked by
`checker.py` and `tile_checker.py`, and written as LLVM text by `renderer.py` and `tile_renderer.py`, the only modules here that emit
instructions. Called by `codegen.kernels` and `codegen.products`.
"""
