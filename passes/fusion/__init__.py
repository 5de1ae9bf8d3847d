"""Fusion: which statements share one loop nest, which nests share rows, which products host what follows them.

In: a simplified Func. Out: a Func of `fuse` and `rows` regions, one kernel each.
"""
