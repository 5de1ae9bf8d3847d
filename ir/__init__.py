"""The intermediate representation (IR): types, values, ops, printer, parser, verifier, interpreter.

In: ops that the tracer, the tape and derivative rules apply to operands (`ops`). Out: a `Func` of statements (`func`), if a `Builder` is
active, or arrays. Used by all other packages; imports none of them.
"""
