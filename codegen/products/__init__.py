"""Matrix products and contractions: our own blocked routine, small ones in registers, and OpenBLAS where it was measured to be faster.

In: windows of operands and result, and the region that a product hosts. Out: LLVM text, or calls of shared routines. Kernels call it.
"""
