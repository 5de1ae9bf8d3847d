"""The vector math library: exp, log, sin, pow and their like as inlined polynomials on lanes.

In: a function's name and registers. Out: LLVM instructions. The emitter of kernels calls it.
"""
