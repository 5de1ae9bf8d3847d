"""AutoGraph: Python control flow on traced values, by rewriting the user's functions.

`source` finds a function's syntax tree; `jumps`, `liveness` and `rewrite` make another of it; `convert` compiles that and knows what is
converted at all. `operators` is what rewritten code calls when it runs. This package is imported when the first function is traced: `ast`
stays out of `import adjit`.
"""
