"""Patterns of Jacobians: which elements of a result depend on which elements of `%x`, drawn as a matrix."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from adjit.ir.errors import UnsupportedError
from adjit.ir.parser import parse_func
from adjit.ir.verifier import verify
from adjit.passes import dependencies
from adjit.passes.dependencies import jacobian_pattern


class Example(NamedTuple):
    params: str
    body: list[str]
    pattern: str  # a row for each element of %a, a column for each of %x


EXAMPLES = {
    "elementwise": Example("%x: f64[3], %y: f64[3]", ["%a: f64[3] = mul %x, %y"], "x.. .x. ..x"),
    "a step has no derivative": Example(
        "%x: f64[3]",
        [
            "%s: f64[3] = floor %x",
            "%z: f64[3] = slice %x {starts=[0], stops=[3], steps=[1]}",
            "%t: f64[3] = add %s, 1.0",
            "%a: f64[3] = mul %t, 2.0",
        ],
        "... ... ...",
    ),
    "detached": Example(
        "%x: f64[3]", ["%s: f64[3] = detach %x", "%t: f64[3] = flip %x {axes=[0]}", "%a: f64[3] = mul %s, %t"], "..x .x. x.."
    ),
    "comparisons": Example(
        "%x: f64[3]", ["%s: bool[3] = less %x, 0.0", "%t: f64[3] = flip %x {axes=[0]}", "%a: f64[3] = where %s, %t, 1.0"], "..x .x. x.."
    ),
    "rows are summed": Example("%x: f64[2,3]", ["%a: f64[2] = sum %x {axes=[1]}"], "xxx... ...xxx"),
    "columns are summed": Example("%x: f64[2,3]", ["%a: f64[3] = sum %x {axes=[0]}"], "x..x.. .x..x. ..x..x"),
    "maxima over two axes": Example("%x: f64[2,2,2]", ["%a: f64[2] = max %x {axes=[0, 2]}"], "xx..xx.. ..xx..xx"),
    "a running sum along rows": Example("%x: f64[2,2]", ["%a: f64[2,2] = cumsum %x {axis=1}"], "xx.. xx.. ..xx ..xx"),
    "a running sum along columns": Example("%x: f64[2,2]", ["%a: f64[2,2] = cumsum %x {axis=0}"], "x.x. .x.x x.x. .x.x"),
    "matrix and vector": Example("%x: f64[2,2], %v: f64[2]", ["%a: f64[2] = matmul %x, %v"], "xx.. ..xx"),
    "vector and matrix": Example("%x: f64[2,2], %v: f64[2]", ["%a: f64[2] = matmul %v, %x"], "x.x. .x.x"),
    "vectors": Example("%x: f64[3], %v: f64[3]", ["%a: f64[] = matmul %x, %v"], "xxx"),
    "left factor": Example("%x: f64[2,2], %w: f64[2,3]", ["%a: f64[2,3] = matmul %x, %w"], "xx.. xx.. xx.. ..xx ..xx ..xx"),
    "right factor": Example("%x: f64[2,2], %w: f64[3,2]", ["%a: f64[3,2] = matmul %w, %x"], "x.x. .x.x x.x. .x.x x.x. .x.x"),
    "batches of products": Example("%x: f64[2,1,2], %w: f64[2,2,1]", ["%a: f64[2,1,1] = matmul %x, %w"], "xx.. ..xx"),
    "both factors": Example("%x: f64[2,2]", ["%t: f64[2,2] = flip %x {axes=[0]}", "%a: f64[2,2] = matmul %x, %t"], "xxx. xx.x x.xx .xxx"),
    "parts": Example(
        "%x: f64[3], %y: f64[2]",
        ["%s: f64[2] = slice %x {starts=[0], stops=[3], steps=[2]}", "%a: f64[6] = concatenate %s, %y, %s {axis=0}"],
        "x.. ..x ... ... x.. ..x",
    ),
    "padded": Example("%x: f64[2]", ["%a: f64[5] = pad %x {low=[1], high=[1], interior=[1], value=1.0}"], ".. x. .. .x .."),
    "gathered": Example("%x: f64[3]", ["%i: i64[2] = constant {data=[2, 0]}", "%a: f64[2] = gather %x, %i"], "..x x.."),
    "gathered at unknown indices": Example("%x: f64[3], %i: i64[2]", ["%a: f64[2] = gather %x, %i"], "xxx xxx"),
    "scattered": Example(
        "%x: f64[3], %y: f64[3]",
        [
            "%i: i64[2] = constant {data=[2, 0]}",
            "%u: f64[2] = slice %x {starts=[0], stops=[2], steps=[1]}",
            "%a: f64[3] = scatter_add %y, %u, %i",
        ],
        ".x. ... x..",
    ),
    "scattered over": Example(
        "%x: f64[3]",
        [
            "%i: i64[] = mul 2, 1",
            "%u: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}",
            "%v: f64[] = reshape %u",
            "%a: f64[3] = scatter_set %x, %v, %i",
        ],
        "x.. .x. x.x",
    ),
    "scattered at unknown indices": Example(
        "%x: f64[3], %i: i64[]",
        [
            "%u: f64[1] = slice %x {starts=[0], stops=[1], steps=[1]}",
            "%v: f64[] = reshape %u",
            "%a: f64[3] = scatter_set 0.0:f64[3], %v, %i",
        ],
        "x.. x.. x..",
    ),
    "branches": Example(
        "%x: f64[3], %p: bool[]",
        ["%a: f64[3] = if %p {", "%s: f64[3] = flip %x {axes=[0]}", "yield %s", "} else {", "yield %x", "}"],
        "x.x .x. x.x",
    ),
    "two iterations": Example(
        "%x: f64[4]",
        [
            "%a: f64[4] = for %k in 0..2 carry (%c: f64[4] = %x) {",
            "%s: f64[3] = slice %c {starts=[0], stops=[3], steps=[1]}",
            "%p: f64[4] = pad %s {low=[1], high=[0], interior=[0], value=0.0}",
            "%n: f64[4] = add %c, %p",
            "yield %n",
            "}",
        ],
        "x... xx.. xxx. .xxx",
    ),
    "no iteration": Example(
        "%x: f64[3]",
        ["%a: f64[3] = for %k in 0..0 carry (%c: f64[3] = %x) {", "%s: f64[3] = flip %c {axes=[0]}", "yield %s", "}"],
        "x.. .x. ..x",
    ),
    "three iterations that move": Example(
        "%x: f64[3]",
        ["%a: f64[3] = for %k in 0..3 carry (%c: f64[3] = %x) {", "%s: f64[3] = flip %c {axes=[0]}", "yield %s", "}"],
        "..x .x. x..",
    ),
    "any number of iterations": Example(
        "%x: f64[3], %n: i64[]",
        ["%a: f64[3] = for %k in 0..%n carry (%c: f64[3] = %x) {", "%s: f64[3] = flip %c {axes=[0]}", "yield %s", "}"],
        "x.x .x. x.x",
    ),
    "more iterations than are followed": Example(
        "%x: f64[3]",
        ["%a: f64[3] = for %k in 0..65 carry (%c: f64[3] = %x) {", "%s: f64[3] = flip %c {axes=[0]}", "yield %s", "}"],
        "xxx xxx xxx",
    ),
    "a counter is no index that is known": Example(
        "%x: f64[3]",
        ["%a: f64[] = for %k in 0..3 carry (%c: f64[] = 0.0) {", "%s: f64[] = gather %x, %k", "%n: f64[] = add %c, %s", "yield %n", "}"],
        "xxx",
    ),
    "a running product": Example("%x: f64[2,2]", ["%a: f64[2,2] = cumprod %x {axis=1}"], "xx.. xx.. ..xx ..xx"),
    "one number": Example("%x: f64[]", ["%a: f64[2] = broadcast %x"], "x x"),
    "parts that overlap": Example(
        "%x: f64[2]", ["%t: f64[2] = flip %x {axes=[0]}", "%a: f64[4] = concatenate %x, %t {axis=0}"], "x. .x .x x."
    ),
    "branches that do not read it": Example(
        "%x: f64[2], %y: f64[2], %p: bool[]",
        ["%b: f64[2] = if %p {", "yield %y", "} else {", "yield 0.0", "}", "%a: f64[2] = add %b, 1.0"],
        ".. ..",
    ),
    "a loop that saves": Example(
        "%x: f64[2], %y: f64[2]",
        [
            "%b: f64[2], %l: stack<f64[2]> = for %k in 0..2 carry (%c: f64[2] = %y) {",
            "%s: f64[2] = mul %c, %x",
            "yield %s saving %s",
            "}",
            "%r: f64[2] = stack_read %l, 0:i64[]",
            "%a: f64[2] = add %b, %r",
        ],
        "xx xx",
    ),
    "a factorisation": Example(
        "%x: f64[2,2], %y: f64[2,2]",
        ["%l: f64[2,2] = cholesky %y", "%b: f64[2,2] = cholesky %x", "%a: f64[2,2] = add %l, %b"],
        "xxxx xxxx xxxx xxxx",
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_pattern(name: str) -> None:
    example = EXAMPLES[name]
    (type,) = (line.partition(" = ")[0].removeprefix("%a: ") for line in example.body if line.startswith("%a: "))
    func = verify(parse_func("\n".join([f"func @f({example.params}) -> {type} {{", *example.body, "return %a", "}\n"])))
    (pattern,), uses_values = jacobian_pattern(func, 0, [None] * len(func.params))
    drawn = np.full((func.results[0].type.size, func.params[0].type.size), ".")
    drawn[pattern.rows, pattern.cols] = "x"
    assert " ".join(map("".join, drawn)) == example.pattern
    assert not uses_values
    assert pattern.columns == func.params[0].type.size
    assert (pattern.keys[:1] >= 0).all()
    assert (np.diff(pattern.keys) > 0).all()


@pytest.mark.parametrize("source", [0, 1])
@pytest.mark.parametrize(
    ("a", "b", "out"),
    [
        ((3,), (3,), ()),
        ((2, 3), (3,), (2,)),
        ((3,), (3, 4), (4,)),
        ((2, 3), (3, 4), (2, 4)),
        ((5, 2, 3), (5, 3, 4), (5, 2, 4)),
        ((3, 2, 2, 4), (3, 2, 4, 5), (3, 2, 2, 5)),
    ],
)
def test_products_of_any_rank(a: tuple[int, ...], b: tuple[int, ...], out: tuple[int, ...], source: int) -> None:
    """An element depends on all elements that change it."""
    x, y, z = (f"f64[{','.join(map(str, shape))}]" for shape in (a, b, out))
    func = verify(parse_func(f"func @f(%x: {x}, %y: {y}) -> {z} {{\n  %z: {z} = matmul %x, %y\n  return %z\n}}\n"))
    (pattern,), _ = jacobian_pattern(func, source, [None, None])
    arrays = [np.random.default_rng(0).random(shape) + 1.0 for shape in (a, b)]
    base, wanted = arrays[0] @ arrays[1], []
    for column in range(arrays[source].size):
        changed = [array.copy() for array in arrays]
        changed[source].flat[column] += 1.0
        wanted += [(row, column) for row in np.flatnonzero(np.ravel(changed[0] @ changed[1] != base))]
    assert sorted(zip(pattern.rows, pattern.cols, strict=True)) == sorted(wanted)


@pytest.mark.parametrize(
    ("type", "line", "entries"),
    [
        ("f64[2]", "%y: f64[2] = gather %x, %i", 6),
        ("f64[3]", "%y: f64[3] = cumsum %x {axis=0}", 9),
        ("f64[3]", "%y: f64[3] = for %k in 0..65 carry (%c: f64[3] = %x) {\n    %s: f64[3] = flip %c {axes=[0]}\n    yield %s\n  }", 9),
    ],
)
def test_patterns_with_too_many_entries_are_refused(type: str, line: str, entries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    func = verify(parse_func(f"func @f(%x: f64[3], %i: i64[2]) -> {type} {{\n  {line}\n  return %y\n}}\n"))
    monkeypatch.setattr(dependencies, "LARGEST", entries)
    (pattern,), _ = jacobian_pattern(func, 0, [None, None])
    assert pattern.keys.size == entries
    monkeypatch.setattr(dependencies, "LARGEST", entries - 1)
    with pytest.raises(UnsupportedError, match="dense"):
        jacobian_pattern(func, 0, [None, None])


def test_an_index_that_is_computed_from_the_unknowns_is_not_known() -> None:
    text = "func @f(%x: f64[3]) -> f64[3] {\n  %i: i64[3] = cast %x\n  %y: f64[3] = gather %x, %i\n  return %y\n}\n"
    (pattern,), uses_values = jacobian_pattern(parse_func(text), 0, [np.zeros(3)])
    assert (pattern.keys.size, uses_values) == (9, False)


def test_indices_that_are_arguments_are_used_where_they_are_known() -> None:
    text = "func @f(%x: f64[3], %i: i64[]) -> f64[] {\n  %j: i64[] = add %i, 1\n  %y: f64[] = gather %x, %j\n  return %y\n}\n"
    (pattern,), uses_values = jacobian_pattern(parse_func(text), 0, [None, np.array(1)])
    assert (pattern.rows.tolist(), pattern.cols.tolist(), uses_values) == ([0], [2], True)


def test_no_unknowns() -> None:
    text = "func @f(%x: f64[0]) -> f64[0] {\n  %y: f64[0] = mul %x, 2.0\n  return %y\n}\n"
    (pattern,), _ = jacobian_pattern(parse_func(text), 0, [None])
    assert pattern.keys.size == 0
