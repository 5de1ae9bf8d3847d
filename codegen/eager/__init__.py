"""Eager calls in native code: operators and functions on small tensors."""
