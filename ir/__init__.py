"""The intermediate representation: types, values, ops, printer, parser, verifier, interpreter."""
