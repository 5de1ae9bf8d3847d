"""Addresses of the elements of arrays, read from the structs of arrays."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from adjit.codegen import elements


class Sub(np.ndarray[Any, Any]):
    pass


ARRAYS = [
    np.zeros(3),
    np.zeros(()),
    np.zeros((0, 4)),
    np.zeros((5, 4), "c16")[1:, ::-2],
    np.zeros((5, 4)).T,
    np.broadcast_to(np.float32(1), (3, 3)),
    np.frombuffer(b"12345678abcdefgh", "i4")[2:],
    np.zeros(4).view(Sub),
    np.arange(6, dtype="f4").reshape(2, 3)[1],
]


def test_addresses_are_numpys() -> None:
    assert elements.data_addresses(ARRAYS) == elements.by_interface(ARRAYS) == [a.ctypes.data for a in ARRAYS]
    if elements.is_known():
        assert elements.by_struct(ARRAYS) == elements.by_interface(ARRAYS)


@pytest.mark.parametrize("name", ["pypy", "graalpy"])
def test_the_layout_of_other_pythons_is_not_assumed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name=name))
    assert not elements.is_known()


def test_another_layout_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elements, "DATA", 24)
    assert not elements.is_known()


def test_scalars_are_refused() -> None:
    with pytest.raises(TypeError, match=r"takes arrays, not float64: convert it by np\.asarray"):
        elements.data_addresses([np.float64(1.0)])
