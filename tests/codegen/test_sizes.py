"""The work of tracing and compiling does not depend on sizes: programs on 10**8 and 10**10 elements become as many lines of LLVM's text.

Nothing is run, and LLVM itself is left out: the arguments are arrays that repeat one element, so that they take no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.llvm.parts import Parts
from adjit.codegen.llvm.target import current
from adjit.codegen.main.module import Module
from adjit.ir import ops
from adjit.ir.ops.base import Array
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.cases import CASES
from tests.ops.harness import several
from tests.tracer.running import trace

FEW, MANY = 10**10, 10**12  # both worth several threads, long enough to check for signals, and beyond 32 bits


class Sized(NamedTuple):
    """`call(n)` is a function of arrays; `arrays(n)` are its arguments."""

    call: Callable[[int], Callable[..., Any]]
    arrays: Callable[[int], list[Array]]


def array(*shape: int, dtype: Any = np.float64) -> Array:
    return np.broadcast_to(np.zeros((), dtype), shape)


def positions(*shape: int) -> Array:
    return array(*shape, dtype=np.int64)


def fixed(function: Callable[..., Any], arrays: Callable[[int], list[Array]]) -> Sized:
    """A function that does not mention the size itself."""
    return Sized(lambda n: function, arrays)


def vector(n: int) -> list[Array]:
    return [array(n)]


def vectors(n: int) -> list[Array]:
    return [array(n), array(n)]


def scalar(n: int) -> list[Array]:
    return [array()]


SHAPES: dict[str, Callable[[int], list[Array]]] = {"n": vector, "3n": lambda n: [array(3, n)], "n3": lambda n: [array(n, 3)]}
ALONG_AXES = ["sum", "prod", "max", "argmax", "mean", "var", "any", "median", "sort", "argsort", "cumsum", "cumprod", "nanmean"]


def rows() -> Iterator[tuple[str, Sized]]:
    for case in CASES:
        if case.domains:
            dtype = np.dtype(np.float64 if "f64" in case.dtypes else np.int32)
            yield case.name, fixed(case.call, lambda n, case=case, dtype=dtype: [array(n, 3, dtype=dtype) for _ in case.domains])


def reductions() -> Iterator[tuple[str, Sized]]:
    for name in ALONG_AXES:
        function = getattr(np, name)
        for shape, arrays in SHAPES.items():
            for axis in (0, None) if shape == "n" else (0, 1, None):
                yield f"{name}-{shape}-{axis}", fixed(lambda x, function=function, axis=axis: function(x, axis=axis), arrays)
    for name in ("softmax", "logsumexp"):
        function = getattr(aj, name)
        for shape, arrays in SHAPES.items():
            yield f"{name}-{shape}", fixed(function, arrays)


MOVING: dict[str, Sized] = {
    "one_hot": Sized(lambda n: lambda i: ops.one_hot(i, n), lambda n: [positions(3)]),
    "one_hot_sum": Sized(lambda n: lambda i: ops.sum(ops.one_hot(i, n)), lambda n: [positions(3)]),
    "arange": Sized(lambda n: lambda x: aj.arange(n) * x, scalar),
    "linspace": Sized(lambda n: lambda x: aj.linspace(0, x, n), scalar),
    "full": Sized(lambda n: lambda x: ops.full((n,), x), scalar),
    "tile": Sized(lambda n: lambda x: np.tile(x, n), lambda n: [array(3)]),
    "repeat": Sized(lambda n: lambda x: np.repeat(x, n), lambda n: [array(3)]),
    "resize": Sized(lambda n: lambda x: np.resize(x, (n + 3,)), vector),
    "random": Sized(lambda n: lambda key: ops.random_normal(key, (n,)), lambda n: [array(2, dtype=np.uint32)]),
    "roll": Sized(lambda n: lambda x: np.roll(x, n // 2), vector),
    "concatenate": fixed(lambda x, y: np.concatenate([x, y]), vectors),
    "concatenate_columns": fixed(lambda x, y: np.concatenate([x, y], 1), lambda n: [array(3, n), array(3, n)]),
    "stack": fixed(lambda x, y: np.stack([x, y], -1), vectors),
    "split": fixed(lambda x: tuple(np.split(x, 2)), vector),
    "diff": fixed(np.diff, vector),
    "slice": fixed(lambda x: x[1:-1] * 2, vector),
    "strided": fixed(lambda x: x[::3] * 2, vector),
    "reversed": fixed(lambda x: x[::-1] * 2, vector),
    "reshape": fixed(lambda x: x.reshape(-1, 10) * 2, vector),
    "transpose": fixed(lambda x: x.T + 0, lambda n: [array(n, 100)]),
    "broadcast": fixed(lambda x, y: x[:, None] * y, lambda n: [array(n), array(3)]),
    "gather": fixed(lambda x, i: x[i], lambda n: [array(n), positions(n)]),
    "gather_rows": fixed(lambda x, i: x[i], lambda n: [array(n, 3), positions(n)]),
    "scatter": fixed(lambda x, i, v: x.at[i].add(v), lambda n: [array(n), positions(n), array(n)]),
    "take": fixed(lambda x, i: np.take(x, i, axis=1), lambda n: [array(3, n), positions(n)]),
    "take_along_axis": fixed(lambda x, i: np.take_along_axis(x, i, axis=1), lambda n: [array(3, n), positions(3, n)]),
    "take_along_rows": fixed(lambda x, i: np.take_along_axis(x, i, axis=0), lambda n: [array(3, n), positions(3, n)]),
    "insert": fixed(lambda x: np.insert(x, 3, 1.0), vector),
    "delete": fixed(lambda x: np.delete(x, 3), vector),
    **{
        f"pad_{mode}": fixed(lambda x, mode=mode: np.pad(x, 5, mode=mode), vector)
        for mode in ("constant", "edge", "reflect", "symmetric", "wrap")
    },
}

MATHEMATICS: dict[str, Sized] = {
    "dot": fixed(lambda x, y: x @ y, vectors),
    "matmul_tall": fixed(lambda x, y: x @ y, lambda n: [array(n, 16), array(16, 16)]),
    "matmul_deep": fixed(lambda x, y: x @ y, lambda n: [array(16, n), array(n, 16)]),
    "matmul_wide": fixed(lambda x, y: x @ y, lambda n: [array(16, 16), array(16, n)]),
    "matmul_batch": fixed(lambda x, y: x @ y, lambda n: [array(n, 4, 4), array(n, 4, 4)]),
    "einsum": fixed(lambda x, y: np.einsum("ij,ij->i", x, y), lambda n: [array(n, 7), array(n, 7)]),
    "einsum_rows": fixed(lambda x, y: np.einsum("ij,ij->i", x, y), lambda n: [array(7, n), array(7, n)]),
    "solve_batch": fixed(np.linalg.solve, lambda n: [array(n, 3, 3), array(n, 3, 1)]),
    "solve_sides": fixed(np.linalg.solve, lambda n: [array(3, 3), array(3, n)]),
    "cholesky_batch": fixed(np.linalg.cholesky, lambda n: [array(n, 3, 3)]),
    "norm": fixed(np.linalg.norm, vector),
    "quantile": fixed(lambda x: np.quantile(x, 0.3), vector),
    "bincount": fixed(lambda i: np.bincount(i, minlength=10), lambda n: [positions(n)]),
    "histogram": fixed(lambda x: np.histogram(x, 10)[0], vector),
    "convolve": fixed(np.convolve, lambda n: [array(n), array(5)]),
    "unwrap": fixed(np.unwrap, vector),
    "gradient": fixed(np.gradient, vector),
    "trapezoid": fixed(np.trapezoid, vector),
    "cov": fixed(np.cov, lambda n: [array(3, n)]),
    "polyval": fixed(lambda x, p: np.polyval(p, x), lambda n: [array(n), array(4)]),
}

PROGRAMS: dict[str, Sized] = {**dict(rows()), **dict(reductions()), **MOVING, **MATHEMATICS}
LOGARITHMIC = ("prod",)  # its derivative traverses a tree of pairs, a level at a time


def lines(call: Callable[..., Any], arrays: list[Array]) -> int:
    """Of the function and its gradient with respect to all floats."""
    floats = [k for k, a in enumerate(arrays) if a.dtype.kind == "f"]

    def with_gradient(*xs: Any) -> Any:
        def loss(*given: Any) -> Any:
            args = list(xs)
            for k, x in zip(floats, given, strict=True):
                args[k] = x
            results = several(call(*args))
            return aj.stack([aj.sum(r) for r in results if r.dtype.kind == "f"] + [aj.sum(x) for x in given]).sum(), results

        return aj.value_and_grad(loss, tuple(range(len(floats))), has_aux=True)(*(xs[k] for k in floats))

    func = OPTIMIZE(trace(with_gradient if floats else call, *arrays).func)
    module = Module(func, current().with_threads(2))
    module.build()
    return sum(text.count("\n") for text in module.parts.texts)


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiling_takes_no_longer_for_large_sizes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parts, "_assembled", lambda self, text, level: None)
    call, arrays = PROGRAMS[name]
    few, many = (lines(call(n), arrays(n)) for n in (FEW, MANY))
    assert many <= (2 if name.startswith(LOGARITHMIC) else 1.1) * few + 20


@pytest.mark.parametrize(
    "function",
    [
        lambda i: aj.one_hot(i, 2**50),
        lambda i: aj.sum(aj.one_hot(i, 2**50), 0),
        lambda i: np.sort(aj.zeros(2**50) + i[0]),
        lambda i: aj.zeros((2**40, 2**40)) + i[0],
    ],
)
def test_impossible_allocations_raise_at_once(function: Callable[..., Any]) -> None:
    with pytest.raises((MemoryError, ValueError)):
        aj.function(function)(np.arange(3))
