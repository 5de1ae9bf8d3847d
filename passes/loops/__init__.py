"""Loops: invariant code leaves them, products are batched out of them, small arrays become scalars in them.

In and out: a Func. Between simplification and fusion.
"""
