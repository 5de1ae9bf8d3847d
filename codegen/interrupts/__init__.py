"""Signals in native code: where they are checked, how often, and how a call is ended.

In: loops that are being emitted, with the work of one iteration. Out: LLVM text that checks for signals and returns. Used by kernels,
products, the main function and the thread pool.
"""
