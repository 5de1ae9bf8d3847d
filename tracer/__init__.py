"""From the user's Python to a Func: traced values, NumPy protocols, pytrees."""
