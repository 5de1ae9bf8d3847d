"""Code that runs without Python: a planned Func as an object file, library or WebAssembly module, with a header or JavaScript wrapper.

In: an optimised Func for a target that is not `hosted`, and names for its arguments, variables and results. Out: bytes and texts of files.
Everything is linked into one LLVM module in which only the public functions keep their names. Called by `runtime.export`.
"""
