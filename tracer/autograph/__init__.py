"""AutoGraph: Python control flow on traced values, by rewriting the user's functions.

`source` finds a function's syntax tree; `jumps`, `liveness` and `rewrite` transform it; `convert` compiles the result and decides what is
converted. `operators` contains the functions that rewritten code calls at run time. This package is imported when the first function is
traced, which keeps `ast` out of `import adjit`.
"""
