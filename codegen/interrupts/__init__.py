"""Signals inside of native code: who looks for them, how often, and how a call is left.

In: loops that are being written, with the work of one iteration. Out: LLVM text that looks and leaves. Kernels, products, the main
function and the thread pool use it.
"""
