"""How the tests run a function eagerly and traced, and compare with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from adjit.ir.interpreter import run
from adjit.ir.operand import Concrete, Operand, array_of, evaluate
from adjit.ir.ops.base import Array, Op
from adjit.ir.types import TensorType, as_dtype
from adjit.tracer.arrays import ArrayMethods
from adjit.tracer.pytree import flatten
from adjit.tracer.trace import Spec, TracedProgram, trace_function


class Eager(ArrayMethods, Concrete):
    """The least that users could hold: every op evaluates."""

    __slots__ = ()
    level = 2

    def apply_op(self, op: Op, args: tuple[Operand, ...]) -> Any:
        results = tuple(Eager(a) for a in evaluate(op, [array_of(a, op) for a in args], [a.type for a in args]))
        return results[0] if len(results) == 1 else results

    def numpy(self) -> Array:
        return self.data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.data if dtype is None else self.data.astype(dtype)

    def __bool__(self) -> bool:
        return bool(self.data)


def spec_of(x: Any) -> Any:
    if isinstance(x, np.ndarray):
        return Spec(TensorType(as_dtype(x.dtype), x.shape))
    return Spec(TensorType(as_dtype(type(x)), ()), weak=True) if type(x) in (int, float) else x


def trace(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> TracedProgram:
    """Trace `fn` as if called with these arrays; Python numbers are traced weakly, anything else is static."""
    leaves, tree = flatten((args, kwargs))
    return trace_function(fn, tree, [spec_of(x) for x in leaves])


def run_program(program: TracedProgram, *args: Any) -> Any:
    """The results of the traced function, by the interpreter."""
    leaves, _ = flatten(args)
    arrays = [np.asarray(x) for x in leaves if isinstance(x, np.ndarray) or type(x) in (int, float)]
    out = run(program.func, *arrays, *program.captures)
    return program.rebuild(out[: len(program.func.results)])


def run_traced(fn: Callable[..., Any], *args: Any) -> Any:
    return run_program(trace(fn, *args), *args)


def run_eager(fn: Callable[..., Any], *args: Any) -> Any:
    leaves, tree = flatten(args)
    return plain(fn(*tree.unflatten([Eager(x) if isinstance(x, np.ndarray) else x for x in leaves])))


def plain(x: Any) -> Any:
    """Operands inside a structure as arrays."""
    leaves, tree = flatten(x)
    return tree.unflatten(
        [np.asarray(leaf.array() if hasattr(leaf, "array") else leaf.data) if isinstance(leaf, Operand) else leaf for leaf in leaves]
    )


def same(actual: Any, expected: Any, what: str = "", rtol: float = 1e-12) -> None:
    """Equal structure, shapes, dtypes and (nearly) values."""
    got, _ = flatten(actual)
    want, _ = flatten(expected)
    assert len(got) == len(want), f"{what}: {len(got)} results, not {len(want)}"
    for a, b in zip(got, want, strict=True):
        if not isinstance(b, np.ndarray | np.generic | bool | int | float):
            assert a == b, what
            continue
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype, f"{what}: {a.dtype}, not {b.dtype}"
        assert a.shape == b.shape, f"{what}: {a.shape}, not {b.shape}"
        tolerance = 1e-5 if a.dtype == np.float32 else rtol
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)
