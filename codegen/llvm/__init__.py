"""LLVM: the toolchain, and the spelling of its text.

In: LLVM IR as text. Out: object code, and linked libraries with addresses. Everything in `codegen` that writes or compiles LLVM IR uses it;
it knows nothing of ops and kernels.
"""
