"""Near misses: programs that differ from a given one in one place. A pattern that a pass recognises in that one must not match these.

The place is an operand (another value of its type, the other operand, another number), an op (a sum instead of a maximum), or what is
returned: one more value, or another.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from random import Random
from typing import Any

import numpy as np

from adjit.ir.errors import AdjitError
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.interpreter import run
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import REGISTRY
from adjit.ir.printer import print_func
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import StackType
from adjit.ir.verifier import verify
from adjit.passes.rewrite import walk

OTHERS = 2  # values of the same type that are tried in place of an operand, the nearest ones
LARGEST = 1 << 17  # elements of all values of a program that is run
LONGEST = 100  # statements
SIBLINGS = {
    "sum": "max", "max": "min", "min": "max", "add": "sub", "sub": "add", "mul": "add", "exp": "tanh", "tanh": "exp", "neg": "abs",
    "maximum": "minimum", "minimum": "maximum", "less": "less_equal", "less_equal": "less",
    "scatter_add": "scatter_set", "scatter_set": "scatter_add",
}  # fmt: skip


def near_misses(func: Func, random: Random) -> Iterator[Func]:
    """The near misses of a function that are valid, in random order."""
    every = [*_blocks(func.block, ()), *_with_another_result(func.block)]
    for block in random.sample(every, len(every)):
        changed = func.replace(block=block)
        if _is_valid(changed):
            yield changed


def _is_valid(func: Func) -> bool:
    try:
        verify(func)
    except AdjitError:
        return False
    return True


def keeps_meaning_of_near_misses(each: Callable[[Func], Func], func: Func, count: int) -> None:
    """After the pass, `count` near misses of a function are valid and have the same results."""
    stmts = list(walk(func.block))
    sizes = [v.type.size for v in (*func.params, *(r for s in stmts for r in s.results)) if not isinstance(v.type, StackType)]
    if any(map(is_symbolic, sizes)) or sum(sizes) > LARGEST or len(stmts) > LONGEST:
        return
    if any(s.op.name == "while" for s in stmts):
        return  # a near miss may never end
    random = Random(print_func(func))
    numbers = np.random.default_rng(random.randint(0, 1 << 30))
    for near in islice(near_misses(func, random), count):
        arrays = [_array(numbers, p) for p in near.params]
        wanted = _outcome(near, arrays)
        out = each(near)
        verify(out)
        pairs = [as_pairs(a, param.type) for a, param in zip(arrays, out.params, strict=True)]
        assert _agree(_outcome(out, pairs), wanted), f"not the same results:\n{near}\nbecame\n{out}"


def as_pairs(array: Any, like: Any) -> Any:
    """The same memory as pairs of real numbers, if `like` has them: a pass replaces complex numbers by such pairs."""
    if array.dtype.kind != "c" or like.dtype.kind == "c":
        return array
    return np.ascontiguousarray(array).view(like.dtype).reshape(like.shape)


def _array(numbers: np.random.Generator, param: Value) -> Any:
    kind = param.type.dtype.kind
    drawn = numbers.standard_normal(param.type.shape) if kind in "fc" else numbers.integers(0, 2, param.type.shape)
    return np.asarray(drawn).astype(param.type.dtype)


def _outcome(func: Func, arrays: list[Any]) -> list[Any] | type[AdjitError]:
    try:
        with np.errstate(all="ignore"):
            return list(run(func, *arrays))
    except AdjitError as error:
        return type(error)


def _agree(a: Any, b: Any) -> bool:
    """Whether both are the same error, or the same numbers; sums may be added in another order."""
    if isinstance(a, type) or isinstance(b, type):
        return a is b
    return len(a) == len(b) and all(_are_close(x, as_pairs(y, x)) for x, y in zip(a, b, strict=True))


def _are_close(a: Any, b: Any) -> bool:
    if a.dtype.kind not in "fc":
        return bool(np.array_equal(a, b))
    eps = float(np.finfo(a.dtype).eps) ** 0.6
    finite = np.abs(b[np.isfinite(b)])
    return bool(np.allclose(a, b, rtol=eps, atol=eps * float(finite.max(initial=0)), equal_nan=True))


def _blocks(block: Block, around: Sequence[Operand]) -> Iterator[Block]:
    """The block with one change, at any depth."""
    scope = [*around, *block.params]
    for k, stmt in enumerate(block.stmts):
        for new in (*_statements(stmt, scope), *_nested(stmt, scope)):
            yield Block(block.params, [*block.stmts[:k], new, *block.stmts[k + 1 :]], block.results, block.saving)
        scope += stmt.results
    for k, result in enumerate(block.results):
        for other in _same_type(result, scope):
            yield Block(block.params, block.stmts, [*block.results[:k], other, *block.results[k + 1 :]], block.saving)


def _nested(stmt: Stmt, scope: Sequence[Operand]) -> Iterator[Stmt]:
    for k, inner in enumerate(stmt.blocks):
        for block in _blocks(inner, scope):
            yield stmt.replace(blocks=(*stmt.blocks[:k], block, *stmt.blocks[k + 1 :]))


def _statements(stmt: Stmt, scope: Sequence[Operand]) -> Iterator[Stmt]:
    for k, arg in enumerate(stmt.args):
        for other in _another_number(arg) if isinstance(arg, Literal) else _same_type(arg, scope):
            yield stmt.replace(args=(*stmt.args[:k], other, *stmt.args[k + 1 :]))
    if len(stmt.args) >= 2 and stmt.args[0] is not stmt.args[1] and stmt.args[0].type == stmt.args[1].type:
        yield stmt.replace(args=(stmt.args[1], stmt.args[0], *stmt.args[2:]))
    if stmt.op.name in SIBLINGS:
        attributes = [getattr(stmt.op, field.name) for field in dataclasses.fields(stmt.op)]  # type: ignore[arg-type]
        yield stmt.replace(op=REGISTRY[SIBLINGS[stmt.op.name]](*attributes))


def _another_number(x: Literal) -> list[Operand]:
    if x.type.dtype.kind == "b":
        return [Literal(not x.value, x.type)]
    return [Literal(x.value + 1, x.type)] if np.isfinite(x.value) else [Literal(0, x.type)]


def _same_type(x: Operand, scope: Sequence[Operand]) -> list[Operand]:
    return [v for v in reversed(scope) if v.type == x.type and v is not x][:OTHERS]


def _with_another_result(block: Block) -> Iterator[Block]:
    for stmt in block.stmts:
        for value in stmt.results:
            if not isinstance(value.type, StackType) and not any(value is r for r in block.results):
                yield Block(block.params, block.stmts, [*block.results, value], block.saving)
