"""The limits of groups: statements, tensors, boxes of pads, and statements after a host."""

from __future__ import annotations

import pytest

from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes.fusion.fuse import MAX_BOXED, MAX_HOSTED, MAX_OPS, MAX_SMALL_OPS, MAX_TENSORS, SMALL, fuse
from tests.passes.checks import rewrites

LARGE = SMALL + 1


def group_sizes(shape: str, params: str, stmts: list[str], results: list[str]) -> list[int]:
    """The statements of each group that these statements, results of one shape, become."""
    types = ", ".join([shape] * len(results))
    text = "\n".join([f"func @f({params}) -> ({types}) {{", *stmts, f"return {', '.join(results)}", "}"])
    out = fuse(parse_func(text))
    verify(out)
    return [len(stmt.blocks[0].stmts) for stmt in out.stmts if stmt.op.is_nest]


def chain(name: str, first: str, shape: str, length: int) -> list[str]:
    """%name1 = exp %first, %name2 = exp %name1 and so on."""
    return [f"%{name}{k}: {shape} = exp %{f'{name}{k - 1}' if k > 1 else first}" for k in range(1, length + 1)]


def total(name: str, params: list[str], shape: str) -> list[str]:
    """The sum of parameters, one after the other; %name1 is that of the first two."""
    return [f"%{name}{k}: {shape} = add %{f'{name}{k - 1}' if k > 1 else params[0]}, %{params[k]}" for k in range(1, len(params))]


def several(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{k}" for k in range(count)]


def declared(names: list[str], shape: str) -> str:
    return ", ".join(f"%{name}: {shape}" for name in names)


@pytest.mark.parametrize(("size", "most"), [(SMALL, MAX_SMALL_OPS), (LARGE, MAX_OPS)])
def test_statements_of_a_group(size: int, most: int) -> None:
    shape = f"f64[{size}]"
    for length, want in ((most, [most]), (most + 1, [most, 1])):
        assert group_sizes(shape, f"%x: {shape}", chain("a", "x", shape, length), [f"%a{most}", f"%a{length}"]) == want


def test_tensors_that_a_group_reads() -> None:
    shape = f"f64[{LARGE}]"
    for count, want in ((MAX_TENSORS, [MAX_TENSORS - 1]), (MAX_TENSORS + 1, [MAX_TENSORS - 1, 1])):
        names = several("x", count)
        assert group_sizes(shape, declared(names, shape), total("a", names, shape), [f"%a{count - 1}"]) == want


def test_tensors_that_a_group_has_already_do_not_count_again() -> None:
    shape, names = f"f64[{LARGE}]", several("x", MAX_TENSORS)
    last = f"a{MAX_TENSORS - 1}"
    stmts = [*total("a", names, shape), f"%b: {shape} = mul %{last}, %x0", f"%c: {shape} = mul %{last}, %b"]
    assert group_sizes(shape, declared(names, shape), stmts, ["%c"]) == [MAX_TENSORS + 1]


def test_tensors_of_small_strangers() -> None:
    """They share no operands, so that no group is merged into another."""
    shape, names = "f64[8]", several("x", MAX_TENSORS + 1)
    stmts = [f"%a{k}: {shape} = exp %{name}" for k, name in enumerate(names)]
    joined = f"%j: f64[{8 * len(names)}] = concatenate {', '.join(f'%a{k}' for k in range(len(names)))} {{axis=0}}"
    last = f"%r: {shape} = slice %j {{starts=[0], stops=[8], steps=[1]}}"
    assert group_sizes(shape, declared(names, shape), [*stmts, joined, last], ["%r"]) == [MAX_TENSORS, 1]


def test_tensors_that_a_group_stores_count() -> None:
    """The n-th statement reads its operand, n - 1 before it have stored theirs: two tensors a statement."""
    shape, names = f"f64[{LARGE}]", several("x", MAX_TENSORS + 3)
    stmts = total("a", names, shape)
    results = [f"%a{k}" for k in range(1, len(names))]
    half = MAX_TENSORS // 2
    assert group_sizes(shape, declared(names, shape), stmts, results) == [half, half, len(stmts) - 2 * half]


def test_operands_of_pads_count() -> None:
    shape, names = f"f64[{LARGE}]", several("x", MAX_TENSORS + 1)
    pads = [f"%p{k}: {shape} = pad %{name} {{low=[0], high=[1], interior=[0], value=0.0}}" for k, name in enumerate(names)]
    stmts = [pads[0]]
    for k in range(1, len(names)):
        stmts += [pads[k], f"%a{k}: {shape} = add %{f'a{k - 1}' if k > 1 else 'p0'}, %p{k}"]
    sizes = group_sizes(shape, declared(names, f"f64[{SMALL}]"), stmts, [f"%a{len(names) - 1}"])
    assert len(sizes) == 2


@pytest.mark.parametrize(("first", "second", "want"), [(127, 128, [256]), (128, 128, [128, 129]), (200, 55, [256]), (200, 56, [200, 57])])
def test_statements_of_groups_that_meet(first: int, second: int, want: list[int]) -> None:
    shape = f"f64[{LARGE}]"
    stmts = [*chain("a", "x", shape, first), *chain("b", "y", shape, second), f"%c: {shape} = add %a{first}, %b{second}"]
    assert group_sizes(shape, f"%x: {shape}, %y: {shape}", stmts, ["%c", f"%a{first}"]) == want


@pytest.mark.parametrize(("first", "second", "want"), [(24, 23, [46]), (24, 24, [23, 24]), (40, 7, [46]), (40, 8, [39, 8])])
def test_tensors_of_groups_that_meet(first: int, second: int, want: list[int]) -> None:
    """The tensors that the groups read, and the stored one."""
    shape, x, y = f"f64[{LARGE}]", several("x", first), several("y", second)
    last = f"%a{first - 1}"
    stmts = [*total("a", x, shape), *total("b", y, shape), f"%c: {shape} = add {last}, %b{second - 1}"]
    assert group_sizes(shape, declared(x + y, shape), stmts, ["%c", last]) == want


def test_boxes_of_pads() -> None:
    """A pad at both ends divides the domain into three boxes, each with separate code."""
    shape, most = f"f64[{LARGE}]", MAX_BOXED // 3
    pad = f"%p: {shape} = pad %x {{low=[1], high=[1], interior=[0], value=0.0}}"
    for length, want in ((most - 1, [most]), (most, [most, 1])):
        stmts = [pad, *chain("a", "p", shape, length)]
        assert group_sizes(shape, f"%x: f64[{LARGE - 2}]", stmts, [f"%a{most - 1}", f"%a{length}"]) == want


@pytest.mark.parametrize(("length", "want"), [(MAX_BOXED // 9 - 1, [MAX_BOXED // 9]), (MAX_BOXED // 9, [MAX_BOXED // 9, 1])])
def test_a_pad_does_not_cut_a_long_group_into_many_boxes(length: int, want: list[int]) -> None:
    shape = "f64[8,8]"
    stmts = [*chain("a", "x", shape, length), f"%p: {shape} = pad %y {{low=[1, 1], high=[1, 1], interior=[0, 0], value=0.0}}"]
    assert group_sizes(shape, f"%x: {shape}, %y: f64[6,6]", stmts, [f"%a{length}", "%p"]) == want


def test_boxes_of_pads_of_groups_that_meet() -> None:
    shape, half = f"f64[{LARGE}]", MAX_BOXED // 6
    for longer, want in ((0, [2 * half]), (1, [half, half + 1])):
        pad = f"%p: {shape} = pad %y {{low=[1], high=[1], interior=[0], value=0.0}}"
        first, second = chain("a", "x", shape, half), chain("b", "p", shape, half - 2 + longer)
        stmts = [*first, pad, *second, f"%c: {shape} = add %a{half}, %b{len(second)}"]
        assert group_sizes(shape, f"%x: {shape}, %y: f64[{LARGE - 2}]", stmts, ["%c", f"%a{half}"]) == want


def test_statements_that_follow_a_host() -> None:
    shape = "f64[2,6,6,5]"
    host = f"%c: {shape} = convolve %x, %k {{strides=[1, 1], dilations=[1, 1], groups=1}}"
    for length, want in ((MAX_HOSTED - 1, [MAX_HOSTED]), (MAX_HOSTED, [MAX_HOSTED, 1])):
        stmts = [host, *(f"%a{k}: {shape} = neg %{f'a{k - 1}' if k > 1 else 'c'}" for k in range(1, length + 1))]
        params = "%x: f64[2,8,8,3], %k: f64[3,3,3,5]"
        assert group_sizes(shape, params, stmts, [f"%a{MAX_HOSTED - 1}", f"%a{length}"]) == want


def test_numbers_that_follow_from_sizes_come_first() -> None:
    """The factor of a mean does not wait for the sum that is divided by the same size, and neither do its readers."""
    rewrites(
        fuse,
        """
        func @f[B=9](%x: f32[B,10]) -> (f32[], f32[B,10]) {
          %s: f32[B,10] = mul %x, %x
          %t: f32[] = sum %s {axes=[0, 1]}
          %n: i64[] = size {value=B}
          %w: f32[] = cast %n
          %l: f32[] = div %t, %w
          %f: f32[] = div 2.0, %w
          %b: f32[B,10] = broadcast %f
          %g: f32[B,10] = mul %b, %x
          return %l, %g
        }
        """,
        """
        func @f[B=9](%x: f32[B,10]) -> (f32[], f32[B,10]) {
          %w: f32[], %f: f32[] = fuse {
            %n: i64[] = size {value=B}
            %w.1: f32[] = cast %n
            %f.1: f32[] = div 2.0, %w.1
            yield %w.1, %f.1
          }
          %b: f32[B,10] = broadcast %f
          %t: f32[], %g: f32[B,10] = fuse {
            %s: f32[B,10] = mul %x, %x
            %t.1: f32[] = sum %s {axes=[0, 1]}
            %g.1: f32[B,10] = mul %b, %x
            yield %t.1, %g.1
          }
          %l: f32[] = fuse {
            %l.1: f32[] = div %t, %w
            yield %l.1
          }
          return %l, %g
        }
        """,
    )
