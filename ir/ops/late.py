"""Ops that few programs use, which are imported with the functions that need them: `load` imports all of them, for the parser."""

from __future__ import annotations

from importlib import import_module

MODULES = ("attention", "collective", "fft", "lu_parts", "special", "spectral")


def load() -> None:
    for module in MODULES:
        import_module(f"{__package__}.{module}")
