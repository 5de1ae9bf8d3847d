"""Shared by the tests of the op table: rows as Funcs, their derivatives, and comparisons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.codegen.compile import compile_func
from adjit.ir.builder import Builder
from adjit.ir.func import Func, Value
from adjit.ir.interpreter import run
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.ops.base import Array
from adjit.ir.types import TensorType
from adjit.ir.verifier import verify
from adjit.passes.autodiff.forward import push_forward
from adjit.passes.autodiff.reverse import backpropagate
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.cases import Case

STEP = 1e-3  # of finite differences of fourth order: truncation and rounding both err by about 1e-12


def several(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def like(arrays: Sequence[Array], prefix: str) -> list[Value]:
    """Parameters of the types of these arrays."""
    return [Value(TensorType(a.dtype, a.shape), f"{prefix}{i}") for i, a in enumerate(arrays)]


def func_of(call: Callable[..., Any], arrays: Sequence[Array]) -> Func:
    params = like(arrays, "x")
    with Builder(params) as builder:
        results = several(call(*params))
        return Func("row", builder.finish(results))


def eager(call: Callable[..., Any], arrays: Sequence[Array]) -> tuple[Array, ...]:
    return tuple(r.data if isinstance(r, Concrete) else r.array() for r in several(call(*map(Concrete, arrays))))


def floats(arrays: Sequence[Array]) -> list[Array]:
    return [a for a in arrays if a.dtype.kind in "fc"]


def random_like(rng: np.random.Generator, arrays: Sequence[Array]) -> list[Array]:
    return [as_complex(rng, a) if a.dtype.kind == "c" else np.asarray(rng.normal(size=a.shape)).astype(a.dtype) for a in arrays]


def as_complex(rng: np.random.Generator, like: Array) -> Array:
    return np.asarray(rng.normal(size=like.shape) + 1j * rng.normal(size=like.shape)).astype(like.dtype)


class Row:
    """One row at one sample: its arguments, its results, and its Funcs of derivatives, all run by the interpreter."""

    def __init__(self, case: Case, args: Sequence[Array]) -> None:
        self.case = case
        self.args = list(args)
        self.results = eager(case.call, args)
        self.wrt = case.differentiable(args)
        rng = np.random.default_rng(1)
        self.tangents = random_like(rng, [self.args[i] for i in self.wrt])
        self.cotangents = random_like(rng, floats(self.results))

    def forward(self, args: Sequence[Array]) -> list[Array]:
        return floats(eager(self.case.call, args))

    def moved(self, step: float) -> list[Array]:
        """The arguments, moved along the tangents."""
        args = list(self.args)
        for i, v in zip(self.wrt, self.tangents, strict=True):
            args[i] = args[i] + step * v
        return args

    def pushed(self) -> list[Array]:
        """Jv, by forward mode."""
        params = like(self.args, "x")
        dots = like(self.tangents, "v")
        with Builder([*params, *dots]) as builder:
            results = several(self.case.call(*params))
            known = push_forward(tuple(builder.stmts), [params[i] for i in self.wrt], dots)
            out = [known.get(id(r), Literal(0.0, r.type)) for r in results if r.type.is_inexact]
            func = verify(Func("jvp", builder.finish(out)))
        return list(run(func, *self.args, *self.tangents))

    def pullback_func(self, order: int = 1) -> Func:
        """u -> J'u by reverse mode; of second order, (u, w) -> the gradient of <w, J'u> by reverse mode over it."""
        params, bars = like(self.args, "x"), like(self.cotangents, "u")
        weights = like(self.tangents, "w") if order == 2 else []
        sources = [params[i] for i in self.wrt]
        with Builder([*params, *bars, *weights]) as builder:
            results = several(self.case.call(*params))
            targets = [r for r in results if r.type.is_inexact]
            found = gradients(builder, targets, bars, sources)
            if order == 2:
                found = gradients(builder, found, weights, sources)
            return verify(Func("vjp", builder.finish(found)))

    def pulled(self, args: Sequence[Array]) -> list[Array]:
        return list(run(self.pullback_func(), *args, *self.cotangents))

    def gradient_of_pulled(self) -> list[Array]:
        return list(run(self.pullback_func(2), *self.args, *self.cotangents, *self.tangents))


def gradients(builder: Builder, targets: Sequence[Operand], seeds: Sequence[Operand], sources: Sequence[Operand]) -> list[Operand]:
    found = backpropagate(tuple(builder.stmts), targets, seeds, sources)
    return [Literal(0.0, s.type) if d is None else d for s, d in zip(sources, found, strict=True)]


def differences(f: Callable[[float], list[Array]]) -> list[Array]:
    """The derivative at 0 of a list of arrays, by central differences of fourth order."""
    one, back = f(STEP), f(-STEP)
    two, far_back = f(2 * STEP), f(-2 * STEP)
    return [(8 * (a - b) - (c - d)) / (12 * STEP) for a, b, c, d in zip(one, back, two, far_back, strict=True)]


def dot(a: Sequence[Array], b: Sequence[Array]) -> float:
    """How cotangents pair with tangents: no part is conjugated."""
    return float(sum(np.sum(x * y).real for x, y in zip(a, b, strict=True)))


# ---- comparisons


def assert_same(got: Sequence[Array], wanted: Sequence[Array]) -> None:
    """The same types and, except for the sign of zero, the same values."""
    for a, b in zip(got, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_array_equal(a, b)


def assert_close(got: Sequence[Array], wanted: Sequence[Array], f64: float = 1e-12, f32: float = 1e-5, absolute: float = 0.0) -> None:
    """Close to a relative tolerance by dtype; integers and bools equal. `absolute` is counted in tolerances of 1."""
    for a, b in zip(got, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if a.dtype.kind in "fc":
            tolerance = f32 if a.dtype in (np.float32, np.complex64) else f64
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=absolute * tolerance)
        else:
            np.testing.assert_array_equal(a, b)


def assert_same_bits(got: Sequence[Array], wanted: Sequence[Array]) -> None:
    for a, b in zip(got, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()


# ---- native code


class Bundle:
    """Several calls in one Func, so that a row is compiled once for all its dtypes and shapes."""

    def __init__(self) -> None:
        self.params: list[Value] = []
        self.arrays: list[Array] = []
        self.builder = Builder()
        self.results: list[Operand] = []

    def add(self, call: Callable[..., Any], arrays: Sequence[Array]) -> None:
        params = like(arrays, f"x{len(self.params)}_")
        with self.builder:
            self.results += several(call(*params))
        self.params += params
        self.arrays += arrays

    def add_gradient(self, row: Row) -> None:
        """Cotangents of the row's arguments, for cotangents of its results."""
        given = [*row.args, *row.cotangents]
        self.add(self._gradient(row), given)

    def _gradient(self, row: Row) -> Callable[..., Any]:
        def gradient(*given: Operand) -> list[Operand]:
            params, bars = given[: len(row.args)], given[len(row.args) :]
            targets = [r for r in several(row.case.call(*params)) if r.type.is_inexact]
            return gradients(self.builder, targets, bars, [params[i] for i in row.wrt])

        return gradient

    def func(self) -> Func:
        self.builder.params = self.params
        with self.builder:
            return Func("bundle", self.builder.finish(self.results))

    def interpreted_and_compiled(self) -> tuple[tuple[Array, ...], list[Array]]:
        func = verify(self.func())
        arrays = [np.array(a, order="C") for a in self.arrays]
        return run(func, *arrays), compile_func(OPTIMIZE(func), traced=func)(arrays)
