"""The main function of a program: kernel calls in order, the branches and loops around them, and stacks for the backward pass.

In: a planned Func. Out: the LLVM module of the whole program. Called by `codegen.compile`.
"""
