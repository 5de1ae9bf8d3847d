"""Large products in strips, each computed by one thread: the same bits as on one thread, for all factors and fused operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.products import choice, products

RNG = np.random.default_rng(0)

SIZES = [(256, 264, 300), (264, 256, 40), (130, 512, 260), (516, 130, 261), (128, 129, 100), (132, 2052, 8)]  # rows, columns, sums

PROGRAMS: dict[str, Callable[..., Any]] = {
    "plain": lambda a, b, c, d: a @ b,
    "transposed factors": lambda a, b, c, d: np.asarray(a.T).T @ (b.T * 1.0).T,
    "bias and activation": lambda a, b, c, d: np.maximum(a @ b + c, 0.0),
    "two results": lambda a, b, c, d: (np.tanh(a @ b + c), a @ b > 0.0),
    "long region": lambda a, b, c, d: np.exp(-np.abs(np.sin(a @ b) * d + c)) / (1.0 + (a @ b) ** 2),
    "update": lambda a, b, c, d: d - 0.1 * (a @ b),
    "sum": lambda a, b, c, d: (np.sum(a @ b), a @ b),
}


@pytest.fixture
def strips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of strips of the products that are cut."""
    seen: list[int] = []
    plain = products.in_strips

    def noted(kernel: Any, target: Any, a: Any, b: Any, *rest: Any) -> None:
        seen.append(products.strips_of(kernel, a, b).number)
        plain(kernel, target, a, b, *rest)

    monkeypatch.setattr(products, "in_strips", noted)
    monkeypatch.setattr(choice, "NEAR_ROWS", -1)  # the factors of these products would be read in place
    monkeypatch.setattr(choice, "DEEP", 1 << 62)  # or panels of them
    monkeypatch.setenv("ADJIT_CACHE", "0")
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_strips_have_the_bits_of_the_whole(m: int, n: int, k: int, name: str, strips: list[int]) -> None:
    dtype = "f4" if k % 2 else "f8"
    arrays = [RNG.normal(size=shape).astype(dtype) for shape in ((m, k), (k, n), (n,), (m, n))]
    want = [np.asarray(x) for x in results(PROGRAMS[name], 1, arrays)]
    assert not strips
    for threads in (2, 3, 4):
        got = results(PROGRAMS[name], threads, arrays)
        assert [np.asarray(x).tobytes() for x in got] == [x.tobytes() for x in want]
    assert set(strips) <= {2, 3, 4, 6, 8}
    assert strips or min(m * n * k, 10**6) < 10**6 or max(m, n) % 2
    plain = PROGRAMS[name](*arrays)
    for x, y in zip(want, plain if isinstance(plain, tuple) else (plain,), strict=True):
        np.testing.assert_allclose(x.astype("f8"), np.asarray(y, "f8"), rtol=1e-3, atol=1e-3)


def results(program: Callable[..., Any], threads: int, arrays: list[Any]) -> tuple[Any, ...]:
    out = aj.function(program, dynamic=False, threads=threads)(*arrays)
    return out if isinstance(out, tuple) else (out,)


@pytest.mark.parametrize(("m", "n", "count"), [(64, 1024, 2), (1024, 64, 2), (2048, 256, 4), (126, 96, 0), (131, 128, 0), (128, 192, 2)])
def test_the_longer_side_is_cut(m: int, n: int, count: int, strips: list[int]) -> None:
    """The number of equal strips that are not too short, two per thread if they are long; 0 if there are none."""
    a, b = RNG.normal(size=(m, 128)).astype("f4"), RNG.normal(size=(128, n)).astype("f4")
    aj.function(lambda a, b: a @ b, dynamic=False, threads=2)(a, b)
    assert strips == ([count] if count else [])
