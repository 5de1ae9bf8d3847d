"""Products, convolutions and pools for all sizes at once, against the interpreter at sizes on both sides of every threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from adjit.codegen.compile import compile_func
from adjit.codegen.llvm.target import current
from adjit.codegen.products.choice import PARALLEL
from adjit.codegen.products.products import PART, has_many_rows
from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.passes.pipeline import OPTIMIZE

from .symbolic import F64, B, T, check, compare, drawn, func_of


def turned(x: Operand) -> Operand:
    return ops.transpose(x, (*range(x.type.rank - 2), x.type.rank - 1, x.type.rank - 2))


def layer(x: Operand, w: Operand, b: Operand) -> Operand:
    product = ops.matmul(x, w)
    return ops.maximum(product + ops.broadcast_to(b, product.type.shape), 0.0)


def long_layer(x: Operand, w: Operand, b: Operand) -> Operand:
    y = layer(x, w, b)
    return ops.tanh(y * 0.5 + 1.0) * y


PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "rows": (ops.matmul, ((B, 784), (784, 128))),
    "rows_of_a_small_matrix": (ops.matmul, ((B, 20), (20, 10))),
    "depth": (lambda x, y: ops.matmul(turned(x), y), ((B, 300), (B, 40))),
    "depth_of_small_matrices": (lambda x, y: ops.matmul(turned(x), y), ((B, 12), (B, 10))),
    "turned": (lambda x, y: ops.matmul(x, turned(y)), ((B, 10), (128, 10))),
    "columns": (ops.matmul, ((30, 20), (20, B))),
    "all_sizes": (lambda x, y: ops.matmul(x, turned(y)), ((B, T), (B, T))),
    "batch": (lambda x, y: ops.matmul(x, turned(y)), ((B, T, 16), (B, T, 16))),
    "batch_of_depths": (ops.matmul, ((B, T, T), (B, T, 16))),
    "vector": (ops.matmul, ((B, 20), (20,))),
    "dot": (ops.matmul, ((B,), (B,))),
    "layer": (layer, ((B, 784), (784, 128), (128,))),
    "small_layer": (layer, ((B, 20), (20, 10), (10,))),
    "long_layer": (long_layer, ((B, 300), (300, 70), (70,))),
    "long_small_layer": (long_layer, ((B, 20), (20, 10), (10,))),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_one_product_runs_at_all_sizes(name: str) -> None:
    call, shapes = PRODUCTS[name]
    sizes = (2, 3, 13, 33) if len(shapes[0]) > 2 else (2, 3, 13, 97, 1000)
    check(call, *shapes, sizes=sizes)


CUT: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "strips_of_columns": (layer, ((B, 200), (200, 132), (132,))),
    "strips_of_rows": (lambda x, y, w: w - 0.1 * ops.matmul(turned(x), y), ((B, 264), (B, 40), (264, 40))),
    "parts_of_rows": (ops.matmul, ((B, 200), (200, 10))),
    "parts_of_a_deep_product": (lambda x, y: ops.matmul(turned(x), y), ((B, 160), (B, 10))),
    "many_rows": (layer, ((B, 64), (64, 64), (64,))),
    "low_rows": (layer, ((B, 40), (40, 600), (600,))),
}


@pytest.mark.parametrize("name", CUT)
def test_products_have_the_same_bits_on_any_number_of_threads(name: str) -> None:
    """However they are cut; and they are right, from sizes for one thread to sizes for several."""
    call, shapes = CUT[name]
    func = func_of(call, *shapes)
    sizes = (2, 3, 31, 64, 97, 700)
    seen = []
    for threads in (1, 2, 3):
        native = compile_func(OPTIMIZE(func, target := current().with_threads(threads)), target, traced=func)
        compare(native, func, {"B": 97})
        seen.append([native(drawn(func, {"B": n}, 2))[0].tobytes() for n in sizes])
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize("threads", [2, 5])
def test_rows_are_divided_where_a_program_for_one_size_does_so(threads: int) -> None:
    """If it follows from the other sizes that a product on several threads has many rows, then for every such product."""
    found = [(n, k) for n in range(8, 300, 8) for k in range(8, 300, 8) if has_many_rows(n, k, threads)]
    assert (40, 64) in found
    assert (128, 784) not in found
    for n, k in found:
        fewest = -(-PARALLEL // (n * k))  # rows of a product that uses several threads
        assert fewest >= n
        assert fewest >= 2 * PART * threads


@pytest.mark.parametrize("vector_bytes", [16, 32])
@pytest.mark.parametrize("threads", [1, 3])
def test_every_vector_width(vector_bytes: int, threads: int) -> None:
    def call(x: Operand, w: Operand, b: Operand) -> tuple[Operand, Operand]:
        return layer(x, w, b), ops.matmul(turned(x), x)

    target = current()._replace(vector_bytes=vector_bytes, threads=threads)
    check(call, (B, 30), (30, 20), (20,), dtype=F64, target=target, sizes=(2, 7, 50, 3000))


def test_convolution_and_pools() -> None:
    def call(x: Operand, w: Operand) -> tuple[Operand, ...]:
        y = ops.maximum(ops.conv(x, w), 0.0)
        return y, ops.max_pool(y, 2), ops.avg_pool(y, 2)

    check(call, (B, 12, 12, 3), (3, 3, 3, 8), sizes=(2, 5, 19))


def test_sizes_are_in_the_text_once() -> None:
    """Structurally identical kernels are shared, also if sizes are known only at run time."""

    def call(x: Operand, w: Operand) -> tuple[Operand, Operand]:
        return ops.matmul(x, w), ops.matmul(x * 2.0, w)

    native = compile_func(OPTIMIZE(func_of(call, (B, 20), (20, 10))))
    assert native.llvm.count("define hidden void @k") + native.llvm.count("define hidden i64 @k") == 2
