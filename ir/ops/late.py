"""Ops that few programs use: their modules are imported when one of their functions is first used. `load` imports all, for the parser."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import Any

# The functions of `ir.ops` that the first access loads, by module.
FUNCTIONS = {
    "cholesky": ("cholesky",),
    "convolution": ("conv", "conv_transpose", "same_padding"),
    "factor": ("slogdet",),
    "lu": ("lu",),
    "pooling": ("avg_pool", "max_pool"),
    "qr": ("qr",),
    "random": ("random_bits", "random_fold_in", "random_integers", "random_key", "random_normal", "random_split", "random_uniform"),
    "scan": ("cumprod", "cumsum"),
    "select": ("select", "top_k"),
    "solve": ("solve",),
    "sort": ("argsort", "sort"),
    "triangular": ("solve_triangular",),
}
MODULE_OF = {name: module for module, names in FUNCTIONS.items() for name in names}
MODULES = (*FUNCTIONS, "attention", "collective", "complex_factor", "custom", "eig", "fft", "hermitian", "lu_parts", "special", "spectral")


def function(name: str) -> Any:
    """The function of `ir.ops` with this name; raises AttributeError if there is none."""
    if name not in MODULE_OF:
        raise AttributeError(f"module 'adjit.ir.ops' has no attribute {name!r}")
    return getattr(import_module(f"{__package__}.{MODULE_OF[name]}"), name)


def load(modules: Iterable[str] = MODULES) -> None:
    for module in modules:
        import_module(f"{__package__}.{module}")
