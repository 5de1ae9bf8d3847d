"""LLVM: the toolchain, and helpers that emit LLVM text.

In: LLVM IR as text. Out: object code, and linked libraries with addresses. Everything in `codegen` that emits or compiles LLVM IR uses this
package; it knows nothing of ops and kernels.
"""
