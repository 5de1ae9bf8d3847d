"""Fusion: which statements share a loop nest, which nests share rows, and which products host the statements that follow them.

Input: a simplified Func. Output: a Func of `fuse` and `rows` regions, one kernel each.
"""
