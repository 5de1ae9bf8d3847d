"""The disk cache: object code, and images of whole programs.

In: a key derived from everything that determines the code. Out: verified bytes. `codegen.llvm` and `codegen.program` look here first.
"""
