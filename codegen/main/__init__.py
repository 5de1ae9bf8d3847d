"""The main function of a program: kernels in order, branches and loops around them, stacks for the backward pass.

In: a planned Func. Out: the LLVM module of the whole program. `codegen.compile` calls it.
"""
