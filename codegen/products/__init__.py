"""Matrix products and contractions: adjit's own routine, small products in registers, and OpenBLAS where it was measured to be faster.

In: windows of the operands and the result, and the region that a product hosts. Out: LLVM text, or calls of shared routines. Used by
kernels.
"""
