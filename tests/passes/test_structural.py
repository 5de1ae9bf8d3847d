"""Every structural rule of `simplify`: its result for the smallest program that it applies to, and programs that it leaves unchanged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from adjit.ir.interpreter import run
from adjit.ir.parser import parse_func
from adjit.ir.printer import print_func
from adjit.ir.types import DTYPE_NAMES
from adjit.ir.verifier import verify
from adjit.passes.simplify.dce import eliminate_dead_code
from adjit.passes.simplify.simplify import simplify
from adjit.passes.simplify.structural import STRUCTURAL, is_lossless


class Example(NamedTuple):
    rule: str
    params: str
    result: str
    before: list[str]
    after: list[str] | None  # None if nothing changes


PADS = [
    "%a: f64[5] = pad %x {low=[1], high=[1], interior=[0], value=0.0}",
    "%b: f64[5] = pad %y {low=[1], high=[1], interior=[0], value=0.0}",
]
SUM = "%c: f64[5] = add %a, %b"
NEIGHBOURS = [
    "%a: f64[7] = pad %x {low=[1], high=[3], interior=[0], value=0.0}",
    "%b: f64[7] = pad %y {low=[4], high=[1], interior=[0], value=0.0}",
]
TWO = "%x: f64[3], %y: f64[3]"
NEXT = "%x: f64[3], %y: f64[2]"

EXAMPLES = [
    Example("drop_identity", "%x: f64[3]", "f64[3]", ["%a: f64[3] = reshape %x", "%b: f64[3] = neg %a"], ["%b: f64[3] = neg %x"]),
    Example(
        "join_reshapes", "%x: f64[6]", "f64[3,2]", ["%a: f64[2,3] = reshape %x", "%b: f64[3,2] = reshape %a"], ["%b: f64[3,2] = reshape %x"]
    ),
    Example(
        "add_before_padding",
        TWO,
        "f64[5]",
        [*PADS, SUM],
        ["%0: f64[3] = add %x, %y", "%c: f64[5] = pad %0 {low=[1], high=[1], interior=[0], value=0.0}"],
    ),
    Example("add_before_padding", TWO, "f64[5]", [*(p.replace("0.0", "2.0") for p in PADS), SUM], None),
    Example("add_before_padding", TWO, "f64[5]", [PADS[0], PADS[1].replace("low=[1], high=[1]", "low=[2], high=[0]"), SUM], None),
    Example(
        "join_neighbours",
        NEXT,
        "f64[7]",
        [*NEIGHBOURS, "%c: f64[7] = add %b, %a"],
        ["%0: f64[5] = concatenate %x, %y {axis=0}", "%c: f64[7] = pad %0 {low=[1], high=[1], interior=[0], value=0.0}"],
    ),
    Example("join_neighbours", NEXT, "f64[7]", [*(n.replace("0.0", "-0.0") for n in NEIGHBOURS), "%c: f64[7] = add %a, %b"], None),
    Example(
        "join_neighbours",
        NEXT,
        "f64[7]",
        [NEIGHBOURS[0], NEIGHBOURS[1].replace("low=[4], high=[1]", "low=[5], high=[0]"), "%c: f64[7] = add %a, %b"],
        None,
    ),
    Example(
        "join_concatenates",
        NEXT,
        "f64[8]",
        ["%a: f64[5] = concatenate %x, %y {axis=0}", "%b: f64[8] = concatenate %a, %x {axis=0}"],
        ["%b: f64[8] = concatenate %x, %y, %x {axis=0}"],
    ),
    Example(
        "join_concatenates",
        "%x: f64[2,3]",
        "f64[4,6]",
        ["%a: f64[2,6] = concatenate %x, %x {axis=1}", "%b: f64[4,6] = concatenate %a, %a {axis=0}"],
        None,
    ),
    Example(
        "join_broadcasts",
        "%x: f64[3]",
        "f64[4,2,3]",
        ["%a: f64[2,3] = broadcast %x", "%b: f64[4,2,3] = broadcast %a"],
        ["%b: f64[4,2,3] = broadcast %x"],
    ),
    Example(
        "broadcast_without_unit_axes",
        "%x: f64[3]",
        "f64[2,3]",
        ["%a: f64[1,3] = reshape %x", "%b: f64[2,3] = broadcast %a"],
        ["%b: f64[2,3] = broadcast %x"],
    ),
    Example("broadcast_without_unit_axes", "%x: f64[3]", "f64[3,2]", ["%a: f64[3,1] = reshape %x", "%b: f64[3,2] = broadcast %a"], None),
    Example(
        "join_transposes",
        "%x: f64[2,3,4]",
        "f64[4,2,3]",
        ["%a: f64[3,4,2] = transpose %x {axes=[1, 2, 0]}", "%b: f64[4,2,3] = transpose %a {axes=[1, 2, 0]}"],
        ["%b: f64[4,2,3] = transpose %x {axes=[2, 0, 1]}"],
    ),
    Example(
        "transpose_of_unit_axes",
        "%x: f64[2,1,3]",
        "f64[1,2,3]",
        ["%a: f64[1,2,3] = transpose %x {axes=[1, 0, 2]}"],
        ["%a: f64[1,2,3] = reshape %x"],
    ),
    Example("transpose_of_unit_axes", "%x: f64[2,1,3]", "f64[3,1,2]", ["%a: f64[3,1,2] = transpose %x {axes=[2, 1, 0]}"], None),
    Example(
        "join_flips",
        "%x: f64[2,3]",
        "f64[2,3]",
        ["%a: f64[2,3] = flip %x {axes=[0, 1]}", "%b: f64[2,3] = flip %a {axes=[1]}"],
        ["%b: f64[2,3] = flip %x {axes=[0]}"],
    ),
    Example(
        "join_slices",
        "%x: f64[12]",
        "f64[2]",
        ["%a: f64[5] = slice %x {starts=[1], stops=[11], steps=[2]}", "%b: f64[2] = slice %a {starts=[1], stops=[5], steps=[3]}"],
        ["%b: f64[2] = slice %x {starts=[3], stops=[10], steps=[6]}"],
    ),
    Example(
        "join_slices",
        "%x: f64[20]",
        "f64[3]",
        ["%a: f64[10] = slice %x {starts=[1], stops=[20], steps=[2]}", "%b: f64[3] = slice %a {starts=[1], stops=[8], steps=[3]}"],
        ["%b: f64[3] = slice %x {starts=[3], stops=[16], steps=[6]}"],
    ),
    Example("small_powers", "%x: f64[2]", "f64[2]", ["%a: f64[2] = integer_pow %x {n=1}", "%b: f64[2] = neg %a"], ["%b: f64[2] = neg %x"]),
    Example(
        "small_powers",
        "%x: f64[2]",
        "f64[2]",
        ["%a: f64[2] = integer_pow %x {n=0}", "%b: f64[2] = add %x, %a"],
        ["%b: f64[2] = add %x, 1.0"],
    ),
    Example(
        "join_casts",
        "%x: f32[2]",
        "f32[2]",
        ["%a: f64[2] = cast %x", "%b: f32[2] = cast %a", "%c: f32[2] = neg %b"],
        ["%c: f32[2] = neg %x"],
    ),
    Example("join_casts", "%x: f64[2]", "f64[2]", ["%a: f32[2] = cast %x", "%b: f64[2] = cast %a"], None),
    Example("join_casts", "%x: i64[2]", "i32[2]", ["%a: f64[2] = cast %x", "%b: i32[2] = cast %a"], None),
    Example(
        "join_sums",
        "%x: f64[2,3,4]",
        "f64[3]",
        ["%a: f64[2,3] = sum %x {axes=[2]}", "%b: f64[3] = sum %a {axes=[0]}"],
        ["%b: f64[3] = sum %x {axes=[0, 2]}"],
    ),
    Example("mask_low_bits", "%x: i64[3]", "i64[3]", ["%a: i64[3] = remainder %x, 64"], ["%a: i64[3] = bitwise_and %x, 63"]),
    Example("mask_low_bits", "%x: u8[3]", "u8[3]", ["%a: u8[3] = remainder %x, 128"], ["%a: u8[3] = bitwise_and %x, 127"]),
    Example("mask_low_bits", "%x: i64[3]", "i64[3]", ["%a: i64[3] = remainder %x, 1", "%b: i64[3] = sub %a, %x"], ["%b: i64[3] = neg %x"]),
    Example("mask_low_bits", "%x: i64[3]", "i64[3]", ["%a: i64[3] = remainder %x, 0"], None),
    Example("mask_low_bits", "%x: i64[3]", "i64[3]", ["%a: i64[3] = remainder %x, 12"], None),
    Example("mask_low_bits", "%x: i64[3]", "i64[3]", ["%a: i64[3] = remainder %x, -4"], None),
    Example("mask_low_bits", "%x: f64[3]", "f64[3]", ["%a: f64[3] = remainder %x, 64.0"], None),
    Example("reduce_unit_axes", "%x: f64[2,1,3]", "f64[2,3]", ["%a: f64[2,3] = max %x {axes=[1]}"], ["%a: f64[2,3] = reshape %x"]),
    Example("reduce_unit_axes", "%x: f64[2,1,3]", "f64[1,3]", ["%a: f64[1,3] = max %x {axes=[0]}"], None),
    Example(
        "reduce_reshaped",
        "%x: f64[2,3]",
        "f64[]",
        ["%a: f64[6] = reshape %x", "%b: f64[] = min %a {axes=[0]}"],
        ["%b: f64[] = min %x {axes=[0, 1]}"],
    ),
    Example("reduce_reshaped", "%x: f64[2,3]", "f64[3]", ["%a: f64[3,2] = reshape %x", "%b: f64[3] = min %a {axes=[1]}"], None),
    Example(
        "reduce_broadcast",
        "%x: f64[1,3,1]",
        "f64[3]",
        ["%a: f64[2,3,5] = broadcast %x", "%b: f64[3] = sum %a {axes=[0, 2]}"],
        ["%0: f64[3] = reshape %x", "%b: f64[3] = mul %0, 10.0"],
    ),
    Example(
        "reduce_broadcast",
        "%x: f64[2,3]",
        "f64[3]",
        ["%a: f64[1,2,3] = broadcast %x", "%b: f64[3] = sum %a {axes=[0, 1]}"],
        None,
    ),
    Example(
        "reduce_broadcast",
        "%x: f64[3]",
        "f64[3]",
        ["%a: f64[4,3] = broadcast %x", "%b: f64[3] = sum %a {axes=[0]}"],
        ["%b: f64[3] = mul %x, 4.0"],
    ),
    Example(
        "reduce_broadcast",
        "%x: f64[3]",
        "f64[]",
        ["%a: f64[4,3] = broadcast %x", "%b: f64[] = max %a {axes=[0, 1]}"],
        ["%b: f64[] = max %x {axes=[0]}"],
    ),
    Example(
        "reduce_broadcast",
        "%x: f64[3]",
        "f64[4]",
        ["%a: f64[4,3] = broadcast %x", "%b: f64[4] = sum %a {axes=[1]}"],
        None,
    ),
    Example(
        "scatter_into_sum",
        "%x: f64[5], %u: f64[2], %i: i64[2]",
        "f64[5]",
        ["%a: f64[5] = scatter_add 0.0:f64[5], %u, %i", "%b: f64[5] = add %x, %a"],
        ['check_index %i {of="scatter_add", x=f64[5]}', "%b: f64[5] = scatter_add %x, %u, %i"],  # the check of the one that is dropped
    ),
    Example(
        "join_neighbours", NEXT, "f64[7]", [NEIGHBOURS[0], NEIGHBOURS[1].replace("value=0.0", "value=2.0"), "%c: f64[7] = add %a, %b"], None
    ),
    Example(
        "join_neighbours", NEXT, "f64[7]", [NEIGHBOURS[0].replace("value=0.0", "value=2.0"), NEIGHBOURS[1], "%c: f64[7] = add %a, %b"], None
    ),
    Example("join_neighbours", "%x: f64[3], %y: f64[7]", "f64[7]", [NEIGHBOURS[0], "%c: f64[7] = add %a, %y"], None),
    Example("join_neighbours", "%x: f64[3], %y: f64[7]", "f64[7]", [NEIGHBOURS[0], "%c: f64[7] = add %y, %a"], None),
    Example(
        "join_neighbours",
        "%x: f64[2,3], %y: f64[1,3]",
        "f64[3,4]",
        [
            "%a: f64[3,4] = pad %x {low=[0, 1], high=[1, 0], interior=[0, 0], value=0.0}",
            "%b: f64[3,4] = pad %y {low=[2, 1], high=[0, 0], interior=[0, 0], value=0.0}",
            "%c: f64[3,4] = add %a, %b",
        ],
        [
            "%0: f64[3,3] = concatenate %x, %y {axis=0}",
            "%c: f64[3,4] = pad %0 {low=[0, 1], high=[0, 0], interior=[0, 0], value=0.0}",
        ],
    ),
    Example(
        "join_transposes",
        "%x: f64[2,3]",
        "f64[2,3]",
        ["%a: f64[2,3] = transpose %x {axes=[0, 1]}", "%b: f64[2,3] = neg %a"],
        ["%b: f64[2,3] = neg %x"],
    ),
    Example("join_transposes", "%x: f64[2,3]", "f64[3,2]", ["%a: f64[3,2] = transpose %x {axes=[1, 0]}"], None),
    Example(
        "join_transposes",
        "%x: f64[2,3,4]",
        "f64[4,3,2]",
        ["%a: f64[3,4,2] = transpose %x {axes=[1, 2, 0]}", "%b: f64[4,3,2] = transpose %a {axes=[1, 0, 2]}"],
        ["%b: f64[4,3,2] = transpose %x {axes=[2, 1, 0]}"],
    ),
    Example(
        "join_flips",
        "%x: f64[2,3]",
        "f64[2,3]",
        ["%a: f64[2,3] = flip %x {axes=[0, 1]}", "%b: f64[2,3] = flip %a {axes=[0, 1]}", "%c: f64[2,3] = neg %b"],
        ["%c: f64[2,3] = neg %x"],
    ),
    Example(
        "join_slices",
        "%x: f64[9]",
        "f64[1]",
        ["%a: f64[4] = slice %x {starts=[1], stops=[8], steps=[2]}", "%b: f64[1] = slice %a {starts=[2], stops=[3], steps=[1]}"],
        ["%b: f64[1] = slice %x {starts=[5], stops=[6], steps=[2]}"],
    ),
    Example(
        "join_slices",
        "%x: f64[9]",
        "f64[0]",
        ["%a: f64[4] = slice %x {starts=[1], stops=[8], steps=[2]}", "%b: f64[0] = slice %a {starts=[2], stops=[2], steps=[1]}"],
        None,
    ),
    Example(
        "join_sums",
        "%x: f64[2,3,4,5]",
        "f64[3]",
        ["%a: f64[2,3,5] = sum %x {axes=[2]}", "%b: f64[3] = sum %a {axes=[0, 2]}"],
        ["%b: f64[3] = sum %x {axes=[0, 2, 3]}"],
    ),
    Example(
        "reduce_broadcast",
        "%x: f64[3]",
        "f64[5,3]",
        ["%a: f64[4,5,3] = broadcast %x", "%b: f64[5,3] = sum %a {axes=[0]}"],
        ["%0: f64[3] = mul %x, 4.0", "%b: f64[5,3] = broadcast %0"],
    ),
    Example(
        "reduce_broadcast",
        "%x: f64[3]",
        "f64[1,3]",
        ["%a: f64[4,1,3] = broadcast %x", "%b: f64[1,3] = max %a {axes=[0]}"],
        ["%b: f64[1,3] = broadcast %x"],
    ),
    Example(
        "reduce_broadcast",
        "%x: f64[1,3]",
        "f64[]",
        ["%a: f64[4,3] = broadcast %x", "%b: f64[] = sum %a {axes=[0, 1]}"],
        ["%0: f64[] = sum %x {axes=[0, 1]}", "%b: f64[] = mul %0, 4.0"],
    ),
    Example("reduce_broadcast", "%x: f64[3]", "f64[0,3]", ["%a: f64[4,0,3] = broadcast %x", "%b: f64[0,3] = sum %a {axes=[0]}"], None),
    Example(
        "sink_broadcast",
        "%x: f64[1], %y: f64[1]",
        "f64[2]",
        ["%a: f64[2] = broadcast %x", "%b: f64[2] = broadcast %y", "%c: f64[2] = add %a, %b", "%d: f64[2] = mul %c, 3.0"],
        ["%0: f64[1] = add %x, %y", "%1: f64[1] = mul %0, 3.0", "%d: f64[2] = broadcast %1"],
    ),
    Example(
        "sink_broadcast",
        "%x: f64[3], %y: f64[1,3]",
        "f64[4,3]",
        ["%a: f64[4,3] = broadcast %x", "%b: f64[4,3] = broadcast %y", "%c: f64[4,3] = add %a, %b"],
        None,
    ),
    Example("sink_broadcast", "%x: f64[3], %y: f64[4,3]", "f64[4,3]", ["%a: f64[4,3] = broadcast %x", "%c: f64[4,3] = add %a, %y"], None),
    Example("sink_broadcast", "%x: f64[3]", "f64[1,3]", ["%a: f64[1,3] = broadcast %x", "%c: f64[1,3] = exp %a"], None),
    Example(
        "scatter_into_sum",
        "%x: f64[5], %u: f64[2], %i: i64[2]",
        "f64[5]",
        ["%a: f64[5] = scatter_add 1.0:f64[5], %u, %i", "%b: f64[5] = add %x, %a"],
        None,
    ),
]
CASTS = {  # three dtypes: whether the one between can be left out
    ("i32", "f64", "i64"): True,
    ("i32", "f64", "i8"): False,  # a float saturates where an integer wraps around
    ("i32", "f64", "f32"): True,
    ("i32", "i64", "i8"): True,
    ("i64", "i32", "i64"): False,
    ("i64", "f64", "f32"): False,
    ("i64", "c128", "c64"): False,
    ("i32", "c128", "c64"): True,
    ("i16", "c64", "c128"): True,
    ("f32", "f64", "i8"): True,
    ("f64", "f32", "f64"): False,
    ("u8", "bool", "u8"): False,
    ("bool", "i64", "f64"): True,
    ("bool", "f32", "f64"): True,
}
LOSSLESS = {
    "i8": "i8 i16 i32 i64 f16 f32 f64 c64 c128",
    "i32": "i32 i64 f64 c128",
    "i64": "i64",
    "u8": "i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128",
    "u32": "i64 u32 u64 f64 c128",
    "u64": "u64",
    "f32": "f32 f64 c64 c128",
    "f64": "f64 c128",
    "c64": "c64 c128",
    "c128": "c128",
}
BY_LOOPS = {"add_in_place"}  # of stacks, which only loops make: tests/passes/test_reverse_regions.py


def text(example: Example, body: list[str]) -> str:
    last = body[-1].partition(":")[0]
    return "\n".join([f"func @f({example.params}) -> {example.result} {{", *(f"  {line}" for line in body), f"  return {last}", "}\n"])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.rule)
def test_rule(example: Example) -> None:
    func = parse_func(text(example, example.before))
    verify(func)
    out = eliminate_dead_code(simplify(func))
    verify(out)
    assert print_func(out) == text(example, example.after or example.before)
    rng = np.random.default_rng(0)
    arrays = [
        rng.integers(0, 2, p.type.shape).astype(p.type.dtype) if p.type.dtype.kind == "i" else rng.random(p.type.shape).astype(p.type.dtype)
        for p in func.params
    ]
    for got, want in zip(run(out, *arrays), run(func, *arrays), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


@pytest.mark.parametrize("dtypes", CASTS, ids="-".join)
def test_casts_of_casts(dtypes: tuple[str, str, str]) -> None:
    source, between, target = dtypes
    before = [f"%a: {between}[3] = cast %x", f"%b: {target}[3] = cast %a"]
    example = Example("join_casts", f"%x: {source}[3]", f"{target}[3]", before, None)
    func = parse_func(text(example, before))
    assert print_func(eliminate_dead_code(simplify(func))) == text(example, [f"%b: {target}[3] = cast %x"] if CASTS[dtypes] else before)


@pytest.mark.parametrize("source", LOSSLESS)
def test_lossless_casts(source: str) -> None:
    every = {name: dtype for dtype, name in DTYPE_NAMES.items() if name != "bool"}
    assert {name for name, dtype in every.items() if is_lossless(every[source], dtype)} == {*LOSSLESS[source].split()}


def test_every_rule_has_an_example() -> None:
    rules = {rule.__name__ for of_op in STRUCTURAL.values() for rule in of_op}
    assert rules - BY_LOOPS - {e.rule for e in EXAMPLES if e.after} == set()
