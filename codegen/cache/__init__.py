"""The disk cache: object code, and images of whole programs.

In: a key of everything that decides the code. Out: bytes, checked. `codegen.llvm` and `codegen.program` ask it first.
"""
