"""The vector math library: exp, log, sin, pow and similar functions as inlined polynomials on lanes.

In: the name of a function, and registers. Out: LLVM instructions. Called by the emitter of kernels.
"""
