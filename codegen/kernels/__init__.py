"""Kernels: each statement of the optimised IR compiled to one native function.

In: a statement whose operands have been assigned buffers. Out: the LLVM text of a loop nest, single-threaded or split into chunks for all
threads. `codegen.main` calls this package for every statement.
"""
