"""Loops: hoists invariant code, batches products out of loops, and turns small arrays inside them into scalars.

Input and output: a Func. Runs between simplification and fusion.
"""
