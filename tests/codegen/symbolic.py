"""How the tests compile a program once for all sizes, and compare it with the interpreter at several of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.codegen.compile import compile_func
from adjit.codegen.llvm.target import current
from adjit.codegen.native import Native
from adjit.ir.builder import Builder
from adjit.ir.func import Func, Value
from adjit.ir.interpreter import run
from adjit.ir.ops.base import Array
from adjit.ir.sizes import Symbols, value_of
from adjit.ir.specialize import specialize
from adjit.ir.target import Target
from adjit.ir.types import F32, F64, DType, TensorType
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.harness import several

SYMBOLS = Symbols()
B, T = SYMBOLS.new("B", 32), SYMBOLS.new("T", 17)
SIZES = (2, 3, 16, 17, 33, 100, 1000)
LENGTHS = (2, 7, 40)
SHAPE = tuple[int, ...]


def func_of(call: Callable[..., Any], *shapes: SHAPE, dtype: DType = F32, indices: Sequence[int] = ()) -> Func:
    """A Func on parameters of these shapes; those in `indices` are integers."""
    types = [TensorType(np.dtype(np.int64) if k in indices else dtype, shape) for k, shape in enumerate(shapes)]
    builder = Builder()
    builder.params = [Value(t, f"x{k}") for k, t in enumerate(types)]
    with builder:
        return Func("f", builder.finish(several(call(*builder.params))))


def drawn(func: Func, sizes: dict[str, int], high: int) -> list[Array]:
    rng = np.random.default_rng(0)
    out = []
    for param in func.params:
        shape = [value_of(n, sizes) for n in param.type.shape]
        is_float = param.type.is_float
        out.append(rng.normal(size=shape).astype(param.type.dtype) if is_float else rng.integers(0, high, shape))
    return out


def compare(native: Native, func: Func, sizes: dict[str, int], high: int = 2) -> None:
    """Compare native code with the interpreter at these sizes."""
    arrays = drawn(func, sizes, high)
    wanted = run(specialize(func, sizes), *arrays)
    for got, want in zip(native(arrays), wanted, strict=True):
        tolerance = 1e-4 if want.dtype == F32 else 1e-10
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=10 * tolerance, err_msg=str(sizes))


def check(
    call: Callable[..., Any],
    *shapes: SHAPE,
    sizes: Sequence[int] = SIZES,
    lengths: Sequence[int] = LENGTHS,
    dtype: DType = F32,
    indices: Sequence[int] = (),
    high: int = 2,
    target: Target | None = None,
) -> None:
    """Compile once; compare at all sizes of B, and of T, if the shapes mention it."""
    func = func_of(call, *shapes, dtype=dtype, indices=indices)
    target = target or current().with_threads(2)
    native = compile_func(OPTIMIZE(func, target), target, traced=func)
    for b in sizes:
        for t in lengths if any("T" in str(n) for shape in shapes for n in shape) else lengths[:1]:
            compare(native, func, {"B": b, "T": t}, high)


__all__ = ["F64", "B", "T", "check", "compare", "drawn", "func_of"]
