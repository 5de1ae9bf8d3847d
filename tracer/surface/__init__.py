"""The functions of NumPy and the array API, composed from the primitives of `adjit.ir.ops`; also adjit's public functions.

Arguments may be operands, NumPy arrays, lists or scalars. Operands are positional-only; all other parameters have NumPy's names, order and
defaults, on which `tracer.numpy_table` relies.
"""
