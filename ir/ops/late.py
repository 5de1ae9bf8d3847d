"""Ops that few programs use, which are imported with the functions that need them: `load` imports all of them, for the parser."""

from __future__ import annotations

from importlib import import_module

# The functions of `ir.ops` that the first access loads, by module. None has the name of its module, which would hide it once it is loaded.
FUNCTIONS = {
    "convolution": ("conv", "conv_transpose", "same_padding"),
    "pooling": ("avg_pool", "max_pool"),
    "random": ("random_bits", "random_fold_in", "random_integers", "random_key", "random_normal", "random_split", "random_uniform"),
    "scan": ("cumprod", "cumsum"),
}
MODULE_OF = {name: module for module, names in FUNCTIONS.items() for name in names}
MODULES = (*FUNCTIONS, "attention", "collective", "fft", "lu_parts", "special", "spectral")


def function(name: str) -> object:
    """The function of `ir.ops` with this name; raises AttributeError if there is none."""
    if name not in MODULE_OF:
        raise AttributeError(f"module 'adjit.ir.ops' has no attribute {name!r}")
    return getattr(import_module(f"{__package__}.{MODULE_OF[name]}"), name)


def load() -> None:
    for module in MODULES:
        import_module(f"{__package__}.{module}")
