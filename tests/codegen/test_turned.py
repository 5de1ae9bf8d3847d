"""Products of a few rows with the transpose of a large matrix are computed as their transposes: the matrix is read in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.llvm.target import current
from adjit.codegen.products import cutting, panels, products

RNG = np.random.default_rng(0)
CACHE = current().caches[1]


def matrices(dtype: str, width: int = 1) -> tuple[Any, Any]:
    """Rows in whole tiles, and a matrix that is larger than the cache."""
    rows = width * cutting.tile_columns(np.dtype(dtype), current().vector_bytes)
    columns = 4 * rows + 3
    count = CACHE // (columns * np.dtype(dtype).itemsize) + 7
    return RNG.normal(size=(rows, columns)).astype(dtype), RNG.normal(size=(count, columns)).astype(dtype)


@pytest.fixture
def turned(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The products that are computed in this way."""
    seen: list[Any] = []
    plain = products._turned

    def noted(*args: Any) -> None:
        seen.append(args[1].type)
        plain(*args)

    monkeypatch.setattr(products, "_turned", noted)
    monkeypatch.setenv("ADJIT_CACHE", "0")
    return seen


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_bits_are_those_of_the_plain_product(dtype: str, threads: int, turned: list[Any]) -> None:
    """An element is the same sum, in the same order."""
    x, w = matrices(dtype, 2)
    plain = aj.function(lambda x, w: x @ w, dynamic=False, threads=threads)
    product = aj.function(lambda x, w: x @ w.T, dynamic=False, threads=threads)
    np.testing.assert_array_equal(product(x, w), plain(x, np.ascontiguousarray(w.T)))
    assert len(turned) == 1
    np.testing.assert_allclose(product(x, w), x @ w.T, rtol=1e-3, atol=1e-3)


REGIONS: dict[str, Callable[..., Any]] = {
    "activation": lambda x, w, b: np.maximum(x @ w.T + b, 0.0),
    "two results": lambda x, w, b: (np.tanh(x @ w.T), x @ w.T > 0.0),
    "also read": lambda x, w, b: (x @ w.T, np.exp(x @ w.T * 0.01), (x @ w.T) @ w),
    "gradient": lambda x, w, b: aj.grad(lambda x: aj.sum(np.tanh(x @ w + b[0])))(x[:, : w.shape[0]]) if w.shape[0] <= x.shape[1] else x,
}


@pytest.mark.parametrize("name", REGIONS)
def test_with_what_follows(name: str, turned: list[Any]) -> None:
    x, w = matrices("f8")
    if name == "gradient":
        x = RNG.normal(size=(x.shape[0], w.shape[0]))
    b = RNG.normal(size=w.shape[0])
    fn = REGIONS[name]
    got, wanted = aj.tree_leaves(aj.function(fn, dynamic=False)(x, w, b)), aj.tree_leaves(fn(x, w, b))
    for a, right in zip(got, wanted, strict=True):
        np.testing.assert_allclose(a, right, rtol=1e-9, atol=1e-9)
    assert turned


def test_others_are_not(turned: list[Any]) -> None:
    x, w = matrices("f8")
    f = aj.function(lambda x, w: x @ w.T, dynamic=False)
    for a, b in ((x[:-1], w), (x, w[:9]), (np.tile(x, (1 + cutting.MAX_ROWS // len(x), 1)), w), (x[:, :9], w[:, :9])):
        np.testing.assert_allclose(f(a, b), a @ b.T, rtol=1e-9, atol=1e-9)
    assert not turned


@pytest.mark.parametrize("threads", [1, 2])
def test_columns_are_packed_side_by_side(threads: int) -> None:
    """Of right factors with as many columns as are packed at once, fewer, and more, with rows that are contiguous or not."""
    f = aj.function(lambda x, w: x @ w, dynamic=False, threads=threads)
    together = panels.SIDE_BY_SIDE * cutting.tile_columns(np.dtype("f4"), current().vector_bytes)
    for n in (together - 1, together, together + 1, 3 * together + 5):
        x, w = RNG.integers(-3, 4, size=(70, 300)).astype("f4"), RNG.integers(-3, 4, size=(300, 2 * n)).astype("f4")
        for part in (w[:, :n], w[:, n:], w[:, ::2], np.asfortranarray(w[:, :n])):
            np.testing.assert_array_equal(f(x, part), x @ part)
