"""Broken IRs and plans, each with one change to a valid one: all are rejected, with a VerifyError that shows the changed statement."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import fields, replace
from functools import cache
from typing import Any, NamedTuple

import pytest

from adjit.ir.errors import VerifyError
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.layout import Layout
from adjit.ir.operand import Operand
from adjit.ir.parser import parse_func
from adjit.ir.plan import BufferView, Place, Plan
from adjit.ir.printer import print_name, print_stmt
from adjit.ir.types import F32, F64, StackType, TensorType
from adjit.ir.verifier import verify
from adjit.passes.autodiff.adjoint import value_and_grad_func
from adjit.passes.pipeline import OPTIMIZE
from adjit.passes.rewrite import Renaming

TEXTS = {
    "softmax": """
func @softmax(%x: f64[32,64], %w: f64[32,64]) -> f64[] {
  %m: f64[32] = max %x {axes=[1]}
  %0: f64[32,1] = reshape %m
  %1: f64[32,64] = broadcast %0
  %2: f64[32,64] = sub %x, %1
  %e: f64[32,64] = exp %2
  %s: f64[32] = sum %e {axes=[1]}
  %3: f64[32,1] = reshape %s
  %4: f64[32,64] = broadcast %3
  %p: f64[32,64] = div %e, %4
  %5: f64[32,64] = mul %p, %w
  %l: f64[] = sum %5 {axes=[0, 1]}
  return %l
}
""",
    "loops": """
func @loops(%x: f64[6,9], %a: f64[9,9], %n: i64[], %i: i64[2], %q: bool[]) -> (f64[], f64[9]) {
  %z: f64[1,9] = slice %x {starts=[0, 0], stops=[1, 9], steps=[1, 1]}
  %0: f64[9] = reshape %z
  %y: f64[9], %t: f64[] = for %k in 0..%n carry (%c: f64[9] = %0, %d: f64[] = 1.0) {
    %1: f64[9] = matmul %a, %c
    %2: f64[9] = tanh %1
    %3: f64[9] = if %q {
      %4: f64[9] = gather %x, %k
      %5: f64[9] = add %2, %4
      yield %5
    } else {
      %6: f64[9] = flip %2 {axes=[0]}
      yield %6
    }
    %7: f64[] = mul %d, 0.5
    yield %3, %7
  }
  %8: f64[9], %9: f64[] = while carry (%u: f64[9] = %y, %v: f64[] = %t) {
    %10: bool[] = less %v, 10.0
    cond %10
  } do {
    %11: f64[9] = mul %u, %u
    %12: f64[] = add %v, 1.0
    yield %11, %12
  }
  %13: f64[2,9] = gather %x, %i
  %14: f64[9] = sum %13 {axes=[0]}
  %15: f64[9] = checkpoint {
    %16: f64[9] = add %8, %14
    yield %16
  }
  %17: f64[] = sum %15 {axes=[0]}
  return %17, %15
}
""",
    "various": """
func @various(%x: f64[4,6], %m: f64[4,4], %im: f32[2,8,3], %f: f32[3,3,5], %u: f64[4,6]) -> (f64[], f64[12,6], f32[2,6,5], f64[5,7]) {
  %0: f64[6,4] = transpose %x {axes=[1, 0]}
  %1: f64[4,4] = matmul %x, %0
  %2: f64[4,4] = add %1, %m
  %3: f64[4,4] = cumsum %2 {axis=1, reverse=false, exclusive=false}
  %4: i64[4,4] = argsort %3 {axis=0, descending=false}
  %5: f64[4,4] = cast %4
  %6: f64[4,6] = matmul %5, %x
  %7: f64[12,6] = concatenate %6, %x, %u {axis=0}
  %8: f32[2,6,5] = convolve %im, %f {strides=[1], dilations=[1], groups=1}
  %9: f64[4,4] = cholesky %m
  %10: f64[] = sum %9 {axes=[0, 1]}
  %11: f64[5,7] = pad %u {low=[1, 0], high=[0, 1], interior=[0, 0], value=0.0}
  %12: f64[4,6] = flip %u {axes=[1]}
  %13: bool[4,6] = less %12, %u
  %14: f64[4,6] = where %13, %12, 1.0
  %15: f64[] = max %14 {axes=[0, 1]}
  %16: f64[] = add %10, %15
  return %16, %7, %8, %11
}
""",
}


@cache
def good(name: str) -> Func:
    """A function by name: as written, `.grad` with its gradient, `.opt` optimised and planned."""
    base, _, stage = name.partition(".")
    func = verify(parse_func(TEXTS[base]))
    if "grad" in stage:
        func = verify(value_and_grad_func(func, [0]))
    return verify(OPTIMIZE(func)) if "opt" in stage else func


class Mutant(NamedTuple):
    """A broken function, and the changed part: a statement, or the place of a value."""

    what: str
    func: Func
    changed: Stmt | Value | None = None


def sites(block: Block, rebuild: Callable[[Block], Func]) -> Iterator[tuple[Block, int, Callable[[Iterable[Stmt]], Func]]]:
    """Every statement, as its block and position, with a function that replaces it by others."""
    for at, stmt in enumerate(block.stmts):

        def put(new: Iterable[Stmt], block: Block = block, at: int = at) -> Func:
            return rebuild(Block(block.params, [*block.stmts[:at], *new, *block.stmts[at + 1 :]], block.results, block.saving))

        yield block, at, put
        for k, inner in enumerate(stmt.blocks):

            def nest(new: Block, stmt: Stmt = stmt, k: int = k, put: Any = put) -> Func:
                return put([stmt.replace(blocks=(*stmt.blocks[:k], new, *stmt.blocks[k + 1 :]))])  # type: ignore[no-any-return]

            yield from sites(inner, nest)


def everywhere(func: Func) -> Iterator[tuple[Block, int, Callable[[Iterable[Stmt]], Func]]]:
    return sites(func.block, lambda block: func.replace(block=block))


def other_types(type: TensorType) -> list[TensorType]:
    if isinstance(type, StackType):
        return [StackType(t) for t in other_types(type.element)]
    longer = type.with_shape([n + 1 for n in type.shape] or [1])
    return [type.with_dtype(F32 if type.dtype == F64 else F64), type.with_shape((*type.shape, 2)), longer]


def changed(what: str, new: Stmt, put: Callable[[Iterable[Stmt]], Func]) -> Mutant:
    return Mutant(f"{new.op.name} {what}", put([new]), new)


def wrong_types(func: Func) -> Iterator[Mutant]:
    for block, at, put in everywhere(func):
        stmt = block.stmts[at]
        for k, result in enumerate(stmt.results):
            for type in other_types(result.type):
                new = Value(type, "mutant")
                out = put([stmt.replace(results=(*stmt.results[:k], new, *stmt.results[k + 1 :]))])
                renaming = Renaming()
                renaming[result] = new
                yield Mutant(f"{stmt.op.name} gives {type}", renaming.func(out, renaming.block(out.block).stmts), new)


def wrong_arity(func: Func) -> Iterator[Mutant]:
    for block, at, put in everywhere(func):
        stmt = block.stmts[at]
        if stmt.op.name in ("concatenate",):
            continue  # takes any number; its type is checked
        if stmt.args:
            yield changed("lacks an operand", stmt.replace(args=stmt.args[:-1]), put)
        yield changed("has one more operand", stmt.replace(args=(*stmt.args, func.params[0])), put)


def wrong_attributes(func: Func) -> Iterator[Mutant]:
    for block, at, put in everywhere(func):
        stmt = block.stmts[at]
        for field in fields(stmt.op):
            value = getattr(stmt.op, field.name)
            for bad in bad_values(field.name, value):
                yield changed(f"{field.name}={bad!r}", stmt.replace(op=replace(stmt.op, **{field.name: bad})), put)


def bad_values(name: str, value: Any) -> list[Any]:
    bad: list[Any] = [object(), b"bytes" if not isinstance(value, bytes) else "text"]
    if name == "axis":
        bad += [-1, 64, True, 1.0]
    elif isinstance(value, tuple):
        bad += [tuple(map(str, value)), (2**70,) * len(value)] if value else []
        if name != "axes":
            bad += [(*value, 0)]
        if name in ("axes", "shape") and value:
            bad += [tuple(-n - 1 for n in value)]
        if name == "axes" and value:
            bad += [(value[0],) * (len(value) + 1)]
    elif isinstance(value, int) and not isinstance(value, bool):
        bad += [-7, 0, 2**70] if name in ("groups", "count") else [2**70]
    return bad


def wrong_order(func: Func) -> Iterator[Mutant]:
    for block, at, put in everywhere(func):
        stmt = block.stmts[at]
        if stmt.results:
            yield Mutant(f"{stmt.op.name} twice", put([stmt, stmt]), stmt)
        else:
            yield changed("reads what nothing defines", stmt.replace(args=(Value(stmt.args[0].type),)), put)
        yield changed("in another phase", stmt.replace(phase="sideward"), put)
        if at and any(id(r) in {id(a) for a in reads(stmt)} for r in block.stmts[at - 1].results):
            before = block.stmts[at - 1]
            swapped = [*block.stmts[: at - 1], stmt, before, *block.stmts[at + 1 :]]
            if block is func.block:
                swap = func.replace(block=Block(block.params, swapped, block.results, block.saving))
                yield Mutant(f"{stmt.op.name} before what it reads", swap, stmt)


def reads(stmt: Stmt) -> list[Operand]:
    return [*stmt.args, *(x for b in stmt.blocks for x in b.free())]


def wrong_regions(func: Func) -> Iterator[Mutant]:
    for block, at, put in everywhere(func):
        stmt = block.stmts[at]

        def with_block(what: str, k: int, new: Block, stmt: Stmt = stmt, put: Any = put) -> Mutant:
            return changed(what, stmt.replace(blocks=(*stmt.blocks[:k], new, *stmt.blocks[k + 1 :])), put)

        if not stmt.blocks:
            yield changed("with a block", stmt.replace(blocks=(Block((), (), ()),)), put)
            continue
        yield changed("lacks a block", stmt.replace(blocks=stmt.blocks[:-1]), put)
        yield changed("has one more block", stmt.replace(blocks=(*stmt.blocks, Block((), (), ()))), put)
        for k, b in enumerate(stmt.blocks):
            more = (*b.params, Value(TensorType(F64)))
            yield with_block("one more parameter", k, Block(more, b.stmts, b.results, b.saving))
            if b.params:
                yield with_block("lacks a parameter", k, Block(b.params[:-1], b.stmts, b.results, b.saving))
            if b.results:
                yield with_block("lacks a yield", k, Block(b.params, b.stmts, b.results[:-1], b.saving))
                yield with_block("one more yield", k, Block(b.params, b.stmts, (*b.results, b.results[0]), b.saving))
            yield with_block("saves", k, Block(b.params, b.stmts, b.results, (*b.saving, func.params[0])))


def all_values(func: Func) -> Iterator[Value]:
    yield from func.params
    for block, at, _ in everywhere(func):
        stmt = block.stmts[at]
        for x in (*stmt.results, *(p for b in stmt.blocks for p in b.params)):
            if isinstance(x, Value):
                yield x


def changed_plan(plan: Plan, **changes: Any) -> Plan:
    out = copy(plan)
    for name, value in changes.items():
        assert hasattr(out, name)
        setattr(out, name, value)
    return out


def wrong_plans(func: Func) -> Iterator[Mutant]:
    plan = func.plan

    def planned(what: str, key: int | None, **changes: Any) -> Mutant:
        return Mutant(what, func.replace(plan=changed_plan(plan, **changes)), values.get(key))

    values = {id(v): v for v in all_values(func)}
    arena = {k: p for k, p in plan.places.items() if p.kind == "arena"}
    for key, place in plan.places.items():
        if place.kind == "arena":
            for index in (plan.arena_bytes + 64, plan.arena_bytes - 8, place.index + 8):
                yield planned(f"{place} at {index}", key, places={**plan.places, key: Place("arena", index)})
        yield planned(f"{place} is nowhere", key, places={k: p for k, p in plan.places.items() if k != key})
        for k in range(len(func.params)):
            if place.kind not in ("param", "constant", "view", "slot", "row"):
                yield planned(f"{place} in parameter {k}", key, places={**plan.places, key: Place("param", k)})
    if arena and plan.arena_bytes:
        yield planned("an arena that is too small", None, arena_bytes=plan.arena_bytes - 64)
    for param in func.params:
        for other in func.params:
            if other is not param:
                yield planned("parameters exchanged", id(param), places={**plan.places, id(param): plan.places[id(other)]})
    for key, window in plan.windows.items():
        if window.root.type.size and id(window.root) in plan.places and plan.places[id(window.root)].kind not in ("view", "slot", "row"):
            far = Layout(window.layout.offset + window.root.type.size, window.layout.strides)
            if not isinstance(window.root.type, StackType):
                yield planned("a window beyond its buffer", key, windows={**plan.windows, key: BufferView(window.root, far)})


def clashing_places(func: Func) -> Iterator[Mutant]:
    """Every statement's result in the memory of an operand that is read later, or of another operand that it does not read in place."""
    plan = func.plan
    last: dict[int, int] = {}
    for n, stmt in enumerate(func.stmts):
        for x in reads(stmt):
            if id(x) in plan.windows:
                last[id(plan.windows[id(x)].root)] = n
    for n, stmt in enumerate(func.stmts):
        for result in stmt.results:
            for m in range(n):
                for before in func.stmts[m].results:
                    place = plan.places.get(id(before))
                    mine = plan.places.get(id(result))
                    if place is None or mine is None or place.kind != "arena" or mine.kind != "arena" or place == mine:
                        continue
                    if last.get(id(before), -1) > n and last.get(id(result), -1) > n:
                        moved = func.replace(plan=changed_plan(plan, places={**plan.places, id(result): place}))
                        yield Mutant(f"{result!r} over {before!r}", moved, result)


FAMILIES: dict[str, tuple[Callable[[Func], Iterator[Mutant]], list[str]]] = {
    "types": (wrong_types, ["softmax", "loops", "various", "loops.grad", "softmax.grad"]),
    "arity": (wrong_arity, ["softmax", "loops", "various", "loops.grad"]),
    "attributes": (wrong_attributes, ["softmax", "loops", "various", "loops.grad"]),
    "order": (wrong_order, ["softmax", "loops", "various"]),
    "regions": (wrong_regions, ["loops", "loops.grad", "softmax.opt", "various.opt"]),
    "plans": (wrong_plans, ["softmax.opt", "loops.opt", "various.opt", "softmax.grad.opt", "loops.grad.opt"]),
    "places": (clashing_places, ["various.opt", "softmax.grad.opt", "loops.grad.opt"]),
}


LEAST = {"places": 10, "order": 60, "regions": 100, "arity": 150}


def refusal(func: Func) -> str | None:
    try:
        verify(func)
    except VerifyError as error:
        return str(error)
    return None


def names_the_change(message: str, mutant: Mutant) -> bool:
    """Whether a message shows the statement that was changed, or one in its blocks; or names the value whose place was, or shows a
    statement that reads or defines it.
    """
    func, changed = mutant.func, mutant.changed
    head, _, shown = message.partition(", in\n  ")
    if not head.startswith(f"@{func.name}: "):
        return False
    if changed is None:  # the size of the arena
        return " = " in shown
    if isinstance(changed, Stmt):
        return any(shown in texts(func, stmt) for stmt in nested(changed))
    numbers = [k for k, p in enumerate(func.params) if p is changed]
    if any(f"{name}: " in head for name in names(func, changed)) or (numbers and f"parameter {numbers[0]} " in head):
        return True
    return any(shown in texts(func, s) for stmt in func.stmts for s in nested(stmt) if touches(s, changed))


def texts(func: Func, stmt: Stmt) -> list[str]:
    try:
        return [print_stmt(func, stmt), repr(stmt)]
    except Exception:  # an attribute may be anything
        return [repr(stmt)]


def names(func: Func, value: Value) -> list[str]:
    try:
        return [print_name(func, value)]
    except Exception:  # elements of another type than the value's have no text, and names are those of the whole text
        return [f"%{value.name}"] if value.name else []


def nested(stmt: Stmt) -> Iterator[Stmt]:
    yield stmt
    for block in stmt.blocks:
        for inner in block.stmts:
            yield from nested(inner)


def touches(stmt: Stmt, value: Value) -> bool:
    inside = (x for b in stmt.blocks for x in (*b.params, *b.results, *b.saving))
    return any(x is value for x in (*stmt.args, *stmt.results, *inside))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_mutant_is_refused(family: str) -> None:
    make, names = FAMILIES[family]
    accepted, count = [], 0
    for name in names:
        for mutant in make(good(name)):
            count += 1
            if not names_the_change(refusal(mutant.func) or "", mutant):
                accepted.append(f"{name}: {mutant.what}: {refusal(mutant.func)}")
    assert not accepted, f"{len(accepted)} of {count}: {accepted[:20]}"
    assert count >= LEAST.get(family, 200)
