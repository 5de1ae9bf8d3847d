"""Tests of eager calls on both paths: the methods of tensors in Python, and the native functions that replace them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

import adjit as aj
from adjit.runtime.quick import settle
from adjit.runtime.quick_native import native

_known: dict[str, Mapping[str, Any]] = {}


@contextmanager
def python_calls() -> Iterator[None]:
    with _methods("python"):
        yield


@contextmanager
def native_calls() -> Iterator[None]:
    with _methods("native"):
        yield


@contextmanager
def _methods(way: str) -> Iterator[None]:
    """Replace methods of tensors inside the block."""
    if not _known:  # they may have been replaced before, by the many calls of other tests
        if not settle():
            pytest.skip("eager calls have no native code here")
        _known.update(python=native.replaced, native={name: vars(aj.Tensor).get(name) for name in native.replaced})
    before = {name: vars(aj.Tensor).get(name) for name in native.replaced}
    _set(_known[way])
    try:
        yield
    finally:
        _set(before)


def _set(methods: Mapping[str, Any]) -> None:
    for name, method in methods.items():
        if method is not None:
            setattr(aj.Tensor, name, method)
        elif name in vars(aj.Tensor):
            delattr(aj.Tensor, name)  # it is inherited
