"""Kernels: one statement of the optimised IR as one native function.

In: a statement with a place for each operand. Out: LLVM text of a loop nest, on one thread or in chunks for all. `codegen.main`
calls it for every statement.
"""
