"""NumPy's and the Array API's functions, composed from the primitives of `adjit.ir.ops`; also adjit's public functions.

Arguments may be operands, NumPy arrays, lists or scalars. Operands are positional-only; all other parameters have NumPy's names, order and
defaults, which `tracer.numpy_table` relies on.
"""
