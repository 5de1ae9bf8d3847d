"""Accesses that cross: tiles, squares turned around in registers, and the strips that are left over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.llvm import memory
from adjit.codegen.llvm.lanes import Reg, Text
from adjit.codegen.llvm.target import current
from adjit.codegen.llvm.toolchain import Library, assemble
from adjit.ir.types import F32

RNG = np.random.default_rng(0)


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    return (RNG.standard_normal(shape) * 50).astype(dtype)


SHAPES = [(128, 256), (300, 177), (64, 64), (33, 700), (700, 33), (32, 2000), (1000, 31)]


@pytest.mark.parametrize("dtype", ["f4", "f8", "i4", "i8", "u1", "?"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_transposes_of_every_dtype(shape: tuple[int, ...], dtype: str) -> None:
    x = numbers(shape, dtype)
    got = aj.function(lambda x: np.transpose(x))(x)
    np.testing.assert_array_equal(got.numpy(), x.T)


@pytest.mark.parametrize("axes", [(0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1), (0, 2, 1, 3)], ids=str)
def test_axes_in_any_order(axes: tuple[int, ...]) -> None:
    x = numbers((5, 40, 33, 70), "f4")
    got = aj.function(lambda x: np.tanh(np.transpose(x, axes)) * 2.0)(x)
    np.testing.assert_allclose(got.numpy(), np.tanh(np.transpose(x, axes)) * 2.0, rtol=1e-5)


FUNCTIONS: dict[str, Any] = {
    "beside a plain one": lambda x, y: x + y.T,
    "two that cross": lambda x, y: x.T * y.T + 1.0,
    "crossing a row": lambda x, y: x.T + y[0] * 2.0,
    "flipped": lambda x, y: x.T[::-1] - y.T[:, ::-1],
    "of two dtypes": lambda x, y: np.where(x.T > 0.0, x.T, y.astype("f4").T),
    "several results": lambda x, y: (x + y.T, x - y.T),
    "symmetric part": lambda x, y: (x + x.T) / 2.0,
    "a long body": lambda x, y: np.sin(x.T) * np.exp(-y.T * 0.01) + np.tanh(x.T * y.T) / (1.0 + y.T * y.T),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("size", [160, 203])
def test_functions_of_crossing_arrays(name: str, size: int) -> None:
    x, y = numbers((size, size), "f8") / 50, numbers((size, size), "f8") / 50
    fn = FUNCTIONS[name]
    got, want = aj.function(fn)(x, y), fn(x, y)
    for a, b in zip(got, want, strict=True) if isinstance(want, tuple) else [(got, want)]:
        np.testing.assert_allclose(a.numpy(), b, rtol=1e-6 if name == "of two dtypes" else 1e-12, atol=1e-12)


def test_gradients_and_threads() -> None:
    x = numbers((500, 301), "f4") / 50

    def loss(x):
        return np.sum(np.tanh(x.T) * np.arange(500, dtype="f4"))

    bits = [aj.function(aj.grad(loss), threads=n)(x).numpy().tobytes() for n in (1, 2, 4)]
    assert len(set(bits)) == 1
    np.testing.assert_allclose(np.frombuffer(bits[0], "f4").reshape(x.shape), (1 - np.tanh(x) ** 2) * np.arange(500)[:, None], rtol=1e-3)


@pytest.mark.parametrize("width", [2, 4, 8, 16])
def test_vectors_turned_around(width: int) -> None:
    import ctypes

    text = Text(current())
    rows = [memory.load(text, "%in", F32, str(k * width), 1, width) for k in range(width)]
    for k, row in enumerate(memory.transposed(text, rows)):
        assert isinstance(row, Reg)
        memory.store(text, "%out", row, str(k * width), 1, width)
    body = "\n".join(text.lines)
    library = Library([assemble(f"define void @turn(ptr %in, ptr %out) nounwind {{\n{body}\nret void\n}}\n", current())], ["turn"], {})
    x, out = numbers((width, width), "f4"), np.zeros((width, width), "f4")
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(library.address["turn"])(x.ctypes.data, out.ctypes.data)
    np.testing.assert_array_equal(out, x.T)
