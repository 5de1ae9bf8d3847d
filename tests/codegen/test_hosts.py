"""Products and pooling with elementwise work fused into them: the stored values, and their buffers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from adjit.codegen.compile import compile_func
from adjit.ir import ops
from adjit.ir.interpreter import run
from adjit.ir.ops.base import Op, apply, perform
from adjit.ir.ops.control import For, Fuse, hosted_by
from adjit.ir.ops.convolution import Convolve
from adjit.ir.ops.create import Iota
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.pooling import MaxPool, PickMax, PlaceMax, SumPool
from adjit.ir.ops.shape import Slice
from adjit.ir.parser import parse_func
from adjit.passes.fusion.fuse import fuse
from adjit.passes.memory.buffers import plan_buffers
from adjit.passes.pipeline import OPTIMIZE
from tests.codegen.test_kernels import build, check, sample

ONES, TWOS = (1, 1), (2, 2)

HOSTS: dict[str, tuple[Op, tuple[tuple[int, ...], ...]]] = {
    "convolve": (Convolve(ONES, ONES, 1), ((3, 9, 8, 3), (3, 3, 3, 10))),
    "convolve_packed": (Convolve(ONES, ONES, 1), ((2, 5, 6, 3), (2, 2, 3, 96))),
    "convolve_groups": (Convolve(TWOS, ONES, 2), ((2, 9, 8, 4), (3, 3, 2, 6))),
    "convolve_on_threads": (Convolve(ONES, ONES, 1), ((9, 17, 16, 3), (3, 3, 3, 10))),
    "convolve_nothing": (Convolve(ONES, ONES, 1), ((2, 4, 4, 0), (3, 3, 0, 5))),
    "convolve_in_one_place": (Convolve(ONES, ONES, 1), ((2, 5, 6, 3), (1, 1, 3, 3))),
    "max_pool": (MaxPool(TWOS, TWOS), ((3, 8, 9, 5),)),
    "sum_pool": (SumPool((3, 2), ONES), ((3, 8, 9, 17),)),
    "pick_max": (PickMax(TWOS, TWOS), ((3, 8, 9, 5), (3, 8, 9, 5))),
    "place_max": (PlaceMax(TWOS, TWOS), ((3, 8, 10, 5), (3, 4, 5, 5))),
    "place_max_on_threads": (PlaceMax(TWOS, TWOS), ((40, 20, 20, 14), (40, 10, 10, 14))),
}

RESTS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "bias_and_relu": lambda y, b, t: (ops.maximum(0.0, y + b), y + b <= 0.0),
    "itself_as_well": lambda y, b, t: (y, ops.tanh(y * t + b)),
    "masked_twice": lambda y, b, t: (ops.where(y > t, y, 1.0), ops.where(y > t, t, y)),
    "with_a_reduction": lambda y, b, t: ((y + t).sum(), ops.exp(y - b)),
}


@pytest.mark.parametrize("rest", RESTS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", HOSTS)
def test_hosts(name: str, dtype: str, rest: str) -> None:
    op, shapes = HOSTS[name]
    arrays = [sample(*shape, dtype=dtype) for shape in shapes]
    result = op.evaluate(*arrays)
    bias, other = sample(result.shape[-1], dtype=dtype), sample(*result.shape, dtype=dtype)

    def program(*args: Any) -> Any:
        *own, b, t = args
        return RESTS[rest](apply(op, *own), ops.broadcast_to(b, result.shape), t)

    native = check(program, *arrays, bias, other)
    func = OPTIMIZE(build(program, *arrays, bias, other))
    assert any(isinstance(s.op, Fuse) and hosted_by(s) is not None for s in func.block.stmts)
    wanted = [r.tobytes() for r in native([*arrays, bias, other])]
    for threads in (1, 2, 3, 4):
        assert [r.tobytes() for r in compile_func(func, threads=threads)([*arrays, bias, other])] == wanted


def test_a_result_is_not_written_over_what_a_convolution_still_reads() -> None:
    """All the values have one size, and each dies where the next is made."""

    def program(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = ops.maximum(0.0, apply(Convolve(ONES, ONES, 1), x + 1.0, w) + x)
        return x

    check(program, sample(2, 5, 6, 3), sample(1, 1, 3, 3))


def test_a_host_has_no_positions() -> None:
    def program(x: Any, w: Any) -> Any:
        y = apply(Convolve(ONES, ONES, 1), x, w)
        return y * perform(Iota(y.dtype, y.shape, 2))

    check(program, sample(2, 5, 6, 3), sample(2, 2, 3, 4))


PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "contraction": ((7, 9), (9, 18)),
    "near": ((40, 64), (64, 96)),
    "one_panel": ((131, 200), (200, 171)),
    "several_panels": ((67, 600), (600, 130)),
    "few_rows": ((20, 300), (300, 523)),
    "wide": ((50, 70), (70, 1300)),
    "tall": ((500, 130), (130, 33)),
    "large": ((520, 300), (300, 530)),
    "nothing_to_sum": ((5, 0), (0, 6)),
    "nothing": ((0, 5), (5, 6)),
    "a_stack": ((5, 20, 30), (5, 30, 40)),
    "a_stack_of_packed": ((3, 90, 70), (3, 70, 160)),
    "a_stack_of_large": ((2, 130, 300), (2, 300, 140)),
    "a_stack_of_stacks": ((2, 3, 8, 9), (2, 3, 9, 10)),
}

FOLLOWING: dict[str, Callable[[Any, Any, Any], Any]] = {
    "bias_and_relu": lambda y, b, t: (ops.maximum(0.0, y + b), y + b <= 0.0),
    "itself_as_well": lambda y, b, t: (y, ops.tanh(y * t + b)),
    "over_an_operand": lambda y, b, t: (t - 0.1 * y) * (t + b),
    "only_a_mask": lambda y, b, t: y + b > t,
    "twice": lambda y, b, t: (ops.exp(ops.tanh(y) - b), ops.tanh(y) * t),
    "gelu": lambda y, b, t: 0.5 * (y + b) * (1.0 + ops.tanh(0.8 * ((y + b) + 0.04 * (y + b) * (y + b) * (y + b)))),
    "and_its_sum": lambda y, b, t: (ops.where(t > 0.0, y, 0.0), ops.where(t > 0.0, y, 0.0).sum(0)),
}


@pytest.mark.parametrize("following", FOLLOWING)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_host(name: str, dtype: str, following: str) -> None:
    """On any number of threads, the same bits as separate kernels for the product and the operations after it."""
    a, b = PRODUCTS[name]
    shapes = a, b, b[-1:], (*a[:-1], b[-1])
    arrays = [sample(*shape, dtype=dtype) / np.sqrt(1 + a[-1], dtype=dtype) for shape in shapes]

    def program(x: Any, y: Any, bias: Any, other: Any) -> Any:
        return FOLLOWING[following](apply(Matmul(), x, y), ops.broadcast_to(bias, other.shape), other)

    native = check(program, *arrays)
    func = OPTIMIZE(build(program, *arrays))
    assert any(isinstance(s.op, Fuse) and hosted_by(s) is not None for s in func.block.stmts)
    alone = plan_buffers(fuse(build(program, *arrays)))
    assert not any(isinstance(s.op, Fuse) and hosted_by(s) is not None for s in alone.block.stmts)
    wanted = [r.tobytes() for r in native(arrays)]
    if following != "and_its_sum":  # which is summed in another order
        assert [r.tobytes() for r in compile_func(alone)(arrays)] == wanted
    for threads in (1, 2, 3, 4):
        assert [r.tobytes() for r in compile_func(func, threads=threads)(arrays)] == wanted


def test_a_result_is_not_written_over_what_a_product_still_reads() -> None:
    """All the values have one size, and each dies where the next is made."""

    def program(x: Any, w: Any) -> Any:
        for _ in range(3):
            x = ops.maximum(0.0, apply(Matmul(), x + 1.0, w) + x) * 0.1
        return x

    for size in (20, 120, 300):
        check(program, sample(size, size), sample(size, size) / size)


@pytest.mark.parametrize("size", [20, 120, 300])
def test_a_product_updates_a_parameter_in_place(size: int) -> None:
    """The panels of the product must not be summed in the buffer of the old value."""
    func = OPTIMIZE(
        parse_func(
            f"""
            func @f(%w: f64[{size},{size}], %x: f64[{size},{size}], %d: f64[{size},{size}]) -> () {{
              %g: f64[{size},{size}] = matmul %x, %d
              %s: f64[{size},{size}] = mul %g, 0.125
              %new: f64[{size},{size}] = sub %w, %s
              return updating %w = %new
            }}
            """
        )
    )
    (region,) = (s for s in func.block.stmts if isinstance(s.op, Fuse))
    assert hosted_by(region) is not None
    assert func.plan is not None
    assert func.plan.place(region.result) == func.plan.place(func.params[0])
    w, x, d = (np.random.default_rng(k).standard_normal((size, size)) for k in range(3))
    wanted = w - 0.125 * (x @ d)
    compile_func(func)([w, x, d])
    np.testing.assert_allclose(w, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("size", [12, 130, 300])
def test_products_host_inside_loops(size: int) -> None:
    """With a factor that the loop has packed, and a row of an array that is read in place."""
    func = parse_func(
        f"""
        func @f(%x: f32[7,{size}], %w: f32[{size},{size}], %z: f32[4,7,{size}]) -> (f32[7,{size}], f32[4,7,{size}]) {{
          %r: f32[7,{size}], %all: f32[4,7,{size}] = for %k in 0..4 carry (%c: f32[7,{size}] = %x, %a: f32[4,7,{size}] = 0.0) {{
            %t: f32[7,{size}] = gather %z, %k
            %p: f32[7,{size}] = matmul %c, %w
            %q: f32[7,{size}] = add %p, %t
            %n: f32[7,{size}] = tanh %q
            %b: f32[4,7,{size}] = scatter_set %a, %q, %k
            yield %n, %b
          }}
          return %r, %all
        }}
        """
    )
    random = np.random.default_rng(0)
    arrays = [random.standard_normal(shape).astype("f4") for shape in ((7, size), (size, size), (4, 7, size))]
    arrays[1] /= size
    optimized = OPTIMIZE(func)
    (loop,) = (s for s in optimized.block.stmts if isinstance(s.op, For))
    assert any(isinstance(s.op, Fuse) and hosted_by(s) is not None for s in loop.blocks[0].stmts)
    for threads in (1, 2):
        for got, want in zip(compile_func(optimized, threads=threads)(arrays), run(func, *arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_operands_through_any_strides() -> None:
    def program(x: Any, y: Any, t: Any) -> Any:
        left = apply(Slice((0, 0), (x.shape[1], x.shape[0]), (2, 1)), x.transpose((1, 0)))
        right = apply(Slice((0, 3), (y.shape[1], y.shape[0]), (1, 1)), y.transpose((1, 0)))
        made = apply(Matmul(), left, right)
        return ops.tanh(made + t.transpose((1, 0))), (made * t.transpose((1, 0))).transpose((1, 0))

    for m, k, n in ((9, 8, 7), (100, 150, 120), (70, 300, 90)):
        check(program, sample(k, 2 * m) / k, sample(n + 3, k), sample(n, m))
