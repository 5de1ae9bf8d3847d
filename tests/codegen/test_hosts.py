"""Products and pooling with elementwise work fused into them: what is stored, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adjit.codegen.compile import compile_func
from adjit.ir import ops
from adjit.ir.ops.base import Op, apply, perform
from adjit.ir.ops.control import Fuse, hosted_by
from adjit.ir.ops.convolution import Convolve
from adjit.ir.ops.create import Iota
from adjit.ir.ops.pooling import MaxPool, PickMax, PlaceMax, SumPool
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


def test_a_host_knows_no_positions() -> None:
    def program(x: Any, w: Any) -> Any:
        y = apply(Convolve(ONES, ONES, 1), x, w)
        return y * perform(Iota(y.dtype, y.shape, 2))

    check(program, sample(2, 5, 6, 3), sample(2, 2, 3, 4))
