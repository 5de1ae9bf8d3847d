"""The primitive ops, one class each: type rule, evaluation, JVP, VJP and lowering in one place."""
