"""Python numbers among a function's arguments have the dtype that they have in NumPy, traced or not.

A Python number gives way to the dtype of an array, and so does what Python's operators compute of it. NumPy's functions return scalars of
NumPy, whose dtype counts: `x * np.tanh(k)` is float64 for a float32 array x, where `x * (k + 1)` is float32.
"""

from __future__ import annotations

import itertools
import linecache
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.interpreter import run
from adjit.tracer.numpy_table import NUMPY
from tests.programs.check import traced

UFUNCS = sorted((u for u in NUMPY if isinstance(u, np.ufunc) and u.signature is None and u.nin <= 2), key=lambda u: u.__name__)
K, N = 0.75, 3
ARRAYS = [np.array([0.5, 0.25, 0.75], "f4"), np.array([1, 2, 3], "i1")]  # x4 and y1

OPERATORS = [
    "k + 1", "1 - k", "k * n", "k / 2", "n / 2", "n // 2", "k // 0.5", "n % 2", "k ** 2", "2 ** n", "-k", "+k", "abs(k)", "k + n",
    "k * True", "n & 1", "n | 4", "n ^ 1", "~n", "n << 1", "n >> 1", "divmod(k, 0.5)[0]", "divmod(n, 2)[1]", "pow(k, 2)", "round(k, 1)",
    "round(k)", "round(np.tanh(k))", "round(x4[0])", "round(x4[0], 1)", "round(n)", "k > 0.5", "n == 3", "not k", "(k > 0.5) + (n > 1)",
    "(k > 0.5) * (n > 1)", "(k > 0.5) - (n > 5)", "-(k > 0.5)", "abs(k > 0.5)", "(k > 0.5) / 2", "(k > 0.5) & (n > 1)", "(k > 0.5) + 1",
    "(k > 0.5) * 0.5", "sum([k > 0.5, n > 1])", "(k > 0.5) << 1", "(k > 0.5) // 1", "float(k)", "int(k)", "float(n)", "int(n)",
    "bool(k)", "float(np.tanh(k))", "int(np.int64(n))", "float(np.sum(x4))", "float(np.sum(x4.astype('f8')))",
    "bool(np.tanh(k)) + bool(k)", "min(k, 2.0)", "max(n, 2)", "min(1.0, k)", "sum([k, k, 1.0])", "k if k > 0.5 else 1.0",
    "n if k > 0.5 else 1", "[k, 2.0][n - 2]", "[1, 2, 3][n - 1]", "(k * 2, n)[n - 3]", "k and n * 1.0", "sorted([k])[0]",
    "{'a': k}['a']", "(lambda t: t * 2)(k)", "np.pi * k", "k * np.pi + np.e",
]  # fmt: skip
FUNCTIONS = [
    "np.tanh(k * 1.0)", "np.float64(k)", "np.float32(k)", "np.int8(n)", "np.float64(1.5) * k", "np.array(k)", "np.asarray(n)",
    "np.array([k, 1.0])", "np.array([k, x4[0]])", "np.array([n, y1[0]])", "np.stack([k, x4[0]])", "np.stack([n, y1[0]])",
    "np.concatenate([[k], x4])", "np.hstack([k, x4])", "np.append(x4, k)", "np.append(y1, n)", "np.sum(k)", "np.mean(k)", "np.mean(n)",
    "np.prod(n)", "np.max(k)", "np.min(n)", "np.any(k)", "np.all(n)", "np.std(k)", "np.var(k)", "np.cumsum(k)", "np.argmax(k)",
    "np.sum([k, 1.0])", "np.sum([k, x4[0]])", "np.where(k > 0.5, k, 1.0)", "np.where(x4 > 0.4, k, 1.0)", "np.where(x4 > 0.4, k, x4)",
    "np.where(y1 > 1, n, y1)", "np.where(y1 > 1, n, 2)", "np.clip(k, 0.0, 0.5)", "np.clip(n, 0, 2)", "np.clip(x4, 0.1, k)",
    "np.clip(y1, 0, n)", "np.clip(k, x4, 1.0)", "np.round(k)", "np.round(n)", "np.around(k, 1)", "np.reshape(k, (1,))", "np.ravel(k)",
    "np.squeeze(k)", "np.expand_dims(k, 0)", "np.atleast_1d(k)", "np.atleast_2d(n)", "np.broadcast_to(k, (3,))", "np.full(3, k)",
    "np.full(3, n)", "np.full_like(x4, k)", "np.ones_like(k)", "np.zeros_like(n)", "np.full_like(n, 2)", "np.tile(k, 3)",
    "np.repeat(k, 3)", "np.dot(k, x4)", "np.dot(y1, n)", "np.dot(k, 2.0)", "np.vdot(k, 1.0)", "np.inner(k, x4)", "np.outer(k, x4)",
    "np.outer(y1, n)", "np.multiply.outer(x4, k)", "np.kron(k, x4)", "np.tensordot(k, x4, 0)", "np.einsum(',i->i', k, x4)",
    "np.linspace(0.0, k, 3)", "np.linspace(k, 1.0, 3)", "np.linspace(0, n, 3)", "np.linspace(x4[0], k, 3)",
    "np.interp(k, [0.0, 1.0], [0.0, 2.0])", "np.nan_to_num(k)", "np.nan_to_num(n)", "np.isclose(k, 0.5)", "np.sinc(k)", "np.real(k)",
    "np.imag(k)", "np.angle(k)", "np.select([k > 0.5], [k], 0.0)", "np.select([x4 > 0.4], [k], 0.0)", "np.select([x4 > 0.4], [x4], k)",
    "np.polyval([k, 1.0], x4)", "np.polyval([1.0, 2.0], k)", "np.diag([k, 1.0])", "np.average([k, 1.0])", "np.median(k)",
    "np.quantile([k, 1.0], 0.5)", "np.percentile(x4, k)", "np.linalg.norm([k, 1.0])", "np.cross([k, 0, 0], x4)",
    "np.trapezoid([k, 1.0])", "np.trapezoid(x4, dx=k)", "np.roll([k, 1.0], 1)", "np.pad([k], 1)", "np.pad(x4, 1, constant_values=k)",
    "np.diff([k, 1.0])", "np.logaddexp(k, 1.0)", "np.nansum(k)", "np.nanmean(k)", "np.ptp([k, 1.0])", "np.count_nonzero(k)",
    "np.take([k, 1.0], 0)", "np.sort([k, 0.5])", "np.r_[k, x4]", "np.r_[k, 1.0]", "np.c_[[k, 1.0]]", "np.meshgrid(k, x4)[0]",
    "np.vander([k, 1.0], 2)", "np.copy(k)", "np.fix(k)", "np.i0(k)", "np.insert(x4, 0, k)", "np.tri(2) * k", "np.heaviside(k, 0.5)",
    "np.block([k, x4])", "np.piecewise(x4, [x4 > 0.4], [1.0, 2.0]) * k", "np.maximum(k, 0.5) * n", "np.result_type(k, x4).type(k)",
    "np.cumsum([k, x4[0]])", "np.searchsorted([0.0, 1.0], k)", "np.digitize(k, [0.0, 1.0])", "np.unwrap([k, 1.0])",
    "np.gradient([k, 1.0])", "np.convolve([k, 1.0], x4)", "np.correlate([k], x4)", "np.resize(k, 3)", "np.ediff1d([k, 1.0])",
    "np.array_equal(k, 1.0)", "np.allclose(k, 1.0)", "np.flip([k, 1.0])", "np.logspace(0.0, k, 3)", "np.geomspace(1.0, k, 3)",
    "np.matmul(np.array([k]), [1.0])", "np.fmax(k, 0.5)", "np.float_power(k, 2)", "np.divmod(n, 2)[0]", "np.modf(k)[0]", "np.gcd(n, 2)",
    "np.ldexp(k, n)", "np.frexp(k)[0]",
]  # fmt: skip
OURS = [
    "aj.tanh(k)", "aj.add(k, 1.0)", "aj.sum(k)", "aj.where(k > 0.5, k, 1.0)", "aj.maximum(k, 0.5)", "aj.relu(k)", "aj.sigmoid(k)",
    "aj.stop_gradient(k)", "aj.square(k)", "aj.asarray(k)", "aj.astype(k, 'f8')", "aj.clip(k, 0.0, 0.5)", "aj.full((3,), k)",
    "aj.stack([k, x4[0]])", "aj.grad(lambda t: t * t)(k)", "aj.grad(lambda t: t * 2.0)(k)", "aj.grad(lambda t: t * n)(k)",
    "aj.grad(lambda t: np.sum(x4) * 1.0)(k)", "aj.value_and_grad(lambda t: t * t)(k)[1]",
    "aj.value_and_grad(lambda t: np.tanh(t))(k)[0]", "aj.grad(lambda t: np.tanh(t))(k)", "aj.grad(lambda t: np.sum(t * x4))(k)",
    "aj.grad(aj.grad(lambda t: t * t * t))(k)", "aj.jvp(lambda t: t * t, (k,), (1.0,))[1]",
    "aj.jvp(lambda t: np.tanh(t), (k,), (1.0,))[1]", "aj.jvp(lambda t: t * 2.0, (k,), (k,))[1]",
    "aj.jvp(lambda t: 2.0, (k,), (1.0,))[1]", "aj.vjp(lambda t: t * t, k)[1](1.0)[0]", "aj.vjp(lambda t: t * t, k)[1](k)[0]",
    "aj.vjp(lambda t: x4 * 1.0, k)[1](x4)[0]", "aj.jacobian(lambda t: t * t)(k)", "aj.jacobian(lambda t: t * x4)(k)",
    "aj.hessian(lambda t: t * t * t)(k)", "aj.linearize(lambda t: t * t, k)[1](1.0)", "aj.grad(lambda t: x4[0] * t)(k)",
    "aj.jvp(lambda t: t * k, (x4,), (x4,))[1]", "aj.vmap(lambda t: t * k)(x4)", "aj.vmap(lambda t: k)(x4)",
    "aj.vmap(lambda t: np.tanh(k))(x4)", "aj.vmap(lambda t, s: t * s, (0, None))(x4, k)", "aj.function(lambda t: t * 2)(k)",
    "aj.function(lambda t: 2.0)(k)", "aj.function(lambda t: np.tanh(t))(k)", "aj.checkpoint(lambda t: np.tanh(t))(k)",
    "aj.hvp(lambda t: t * t * t, k, 1.0)",
]  # fmt: skip


def program_of(expression: str, names: dict[str, Any]) -> Callable[..., Any]:
    """A program whose results say which dtype an expression has, and whether it counts next to float32 and int8."""
    source = f"def program(k, n, x4, y1):\n    z = {expression}\n    return z * x4[0], z * y1[0], z * 1\n"
    file = f"<numbers: {expression}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)  # where AutoGraph looks for it
    scope = dict(names)
    exec(compile(source, file, "exec"), scope)
    return scope["program"]  # type: ignore[no-any-return]


def check(expressions: Iterable[str], names: dict[str, Any], arrays: Sequence[Any] = ARRAYS) -> None:
    """Check that expressions have the same results plain and traced, except those that NumPy refuses, and float16, which adjit lacks."""
    wrong = []
    for expression in expressions:
        program = program_of(expression, names)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = [np.asarray(v) for v in program(K, N, *arrays)]
        except (TypeError, OverflowError):
            continue
        if any(v.dtype == np.float16 for v in want):
            continue
        func, given = traced(program, (K, N, *ARRAYS))
        got = run(func, *given)
        if [v.dtype for v in got] != [v.dtype for v in want]:
            wrong.append(f"{expression}: {[v.dtype.name for v in got]}, not {[v.dtype.name for v in want]}")
        elif not all(np.allclose(a, b, 1e-5, 1e-6, equal_nan=True) for a, b in zip(got, want, strict=True)):
            wrong.append(f"{expression}: {got}, not {want}")
    assert not wrong, "\n".join(wrong)


def ufunc_calls(ufunc: np.ufunc) -> Iterator[str]:
    given = ["k", "n", "n > 1", "x4", "y1", "0.5", "2"]
    for args in itertools.product(given, repeat=ufunc.nin):
        if {"k", "n", "n > 1"} & set(args):
            yield f"np.{ufunc.__name__}({', '.join(args)})" + ("[0]" if ufunc.nout > 1 else "")


def test_operators() -> None:
    check(OPERATORS, {"np": np})


def test_functions_of_numpy() -> None:
    check(FUNCTIONS, {"np": np})


def test_functions_of_adjit() -> None:
    check(OURS, {"np": np, "aj": aj}, [aj.tensor(x) for x in ARRAYS])


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda u: u.__name__)
def test_ufuncs(ufunc: np.ufunc) -> None:
    check(ufunc_calls(ufunc), {"np": np})
