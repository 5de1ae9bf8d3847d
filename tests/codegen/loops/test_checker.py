"""The checker accepts programs of the planner, and rejects them after any change."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.loops.checker import check
from adjit.codegen.loops.ir import (
    CHUNK,
    Access,
    Call,
    Close,
    Contraction,
    Either,
    Finish,
    Fold,
    Loop,
    LoopProgram,
    Merge,
    Nest,
    Node,
    Open,
    Parallel,
    Row,
    Spill,
    Square,
    Tile,
    Vector,
)  # fmt: skip
from adjit.codegen.main.module import Module
from adjit.ir import ops
from adjit.ir.errors import VerifyError
from adjit.ir.expr import variable
from adjit.ir.records import replace

RNG = np.random.default_rng(0)


def sample(*shape: int, dtype: str = "f4") -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, -1, keepdims=True))
    return e / np.sum(e, -1, keepdims=True)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Any]] = {
    "map": (lambda x: np.tanh(x) * 2, sample(37, 53)),
    "long row": (lambda x: np.sum(x * x), sample(40_003)),
    "sums of rows": (lambda x: (np.sum(x, 1), np.max(x)), sample(37, 53)),
    "sums of columns": (lambda x: np.sum(np.exp(x), 0), sample(300, 7)),
    "sums of long columns": (lambda x: np.sum(x, 0), sample(30, 400)),
    "chunks": (lambda x: (np.sum(np.exp(x)), np.exp(x), np.sum(x, 0)), sample(700, 600)),
    "chunks of one axis": (lambda x: (np.exp(x) + 1, np.sum(np.tanh(x))), sample(300_001)),
    "rows": (softmax, sample(50, 30)),
    "rows in chunks": (softmax, sample(3000, 200)),
    "pads": (lambda x: np.pad(x, ((1, 2), (3, 1))) * 2, sample(9, 11)),
    "flipped": (lambda x: x[:, ::-1] + x, sample(20, 70)),
    "crossing": (lambda x: x.T * 1.0, sample(256, 256, dtype="u1")),
    "positions": (lambda x: x * np.arange(40.0)[:, None], sample(40, 30, dtype="f8")),
    "product": (lambda x: x @ x.T, sample(37, 21)),
    "product and what follows": (lambda x: np.maximum(x @ aj.ones((11, 50), "f4") + x[:, :1], 0), sample(20, 11)),
    "vectors of products": (lambda x: np.einsum("ijk,lkj->il", x, x), sample(9, 5, 5)),
    "convolution": (lambda x: ops.conv(x, aj.ones((3, 3, 2, 5), "f4")), sample(3, 12, 11, 2)),
    "large product": (lambda x: x @ x.T, sample(151, 140)),  # not cut into strips
}


def programs(name: str, dynamic: bool | None = None) -> list[LoopProgram]:
    fn, x = FUNCTIONS[name]
    executable = aj.function(fn, dynamic=dynamic).inspect(x)._executable
    module = Module(executable.optimized, executable.target)
    module.build()
    return [p for p in module.programs.values() if p.nodes]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_planned_programs_are_accepted(name: str) -> None:
    found = programs(name)
    assert found
    for program in found:
        check(program)
        assert program.extents


# ---- mutations: each changes one field of one node; a broken program must not pass


def shown(node: Node) -> str:
    """A node with its fields."""
    if isinstance(node, tuple):
        return str(node)
    return f"{type(node).__name__}({', '.join(f'{name}={getattr(node, name)}' for name in type(node).__annotations__)})"


def lists(nodes: list[Node]) -> Iterator[list[Node]]:
    yield nodes
    for node in nodes:
        if isinstance(node, Loop | Parallel):
            yield from lists(node.body)
        elif isinstance(node, Nest | Contraction):
            yield from lists(node.nodes)
        elif isinstance(node, Either):
            yield from lists(node.few)
            yield from lists(node.many)


def loop_mutations(loop: Loop) -> Iterator[Loop]:
    yield replace(loop, start=loop.start + 1)
    yield replace(loop, start=loop.start - 1)
    yield replace(loop, stop=loop.stop + loop.step)
    yield replace(loop, stop=loop.stop - loop.step)
    yield replace(loop, stop=loop.start)
    yield replace(loop, step=loop.step + 1)
    yield replace(loop, step=0)
    yield replace(loop, body=[])
    if loop.carries:
        yield replace(loop, carries=loop.carries[1:])
        first = loop.carries[0]
        yield replace(loop, carries=(first._replace(width=first.width + 1), *loop.carries[1:]))
        yield replace(loop, carries=(first._replace(reduction=99), *loop.carries[1:]))


def vector_mutations(vector: Vector) -> Iterator[Vector]:
    yield vector._replace(at=vector.at + 1)
    yield vector._replace(at=variable("nowhere"))
    yield vector._replace(width=vector.width + 1)
    yield vector._replace(width=0)
    if vector.stop is not None:
        yield vector._replace(stop=None)
        yield vector._replace(stop=vector.stop + 1)
        yield vector._replace(stop=vector.stop - 1)


def tile_mutations(tile: Tile) -> Iterator[Tile]:
    yield tile._replace(rows=tile.rows[1:])
    yield tile._replace(rows=(*tile.rows, tile.rows[0]))
    yield tile._replace(rows=())
    yield tile._replace(widths=tile.widths[1:])
    yield tile._replace(widths=(*tile.widths, 1))
    if tile.rows[-1]:
        ((axis, distance), *rest) = tile.rows[-1]
        yield tile._replace(rows=(*tile.rows[:-1], ((axis, distance + 1), *rest)))


def outside(access: Access, extents: dict[str, Any], axes: Iterable[int]) -> list[Access]:
    """Changes that leave the buffer of an access; none if it is not known."""
    extent = extents.get(access.pointer)
    if extent is None:
        return []
    size = (extent.stop - extent.start) // access.dtype.itemsize
    strides = [tuple(s + size if a == axis else s for a, s in enumerate(access.strides)) for axis in axes]
    moved = [access._replace(offset=access.offset + by) for by in (-size, size)]
    return [*moved, *(access._replace(strides=each) for each in strides)]


def contraction_mutations(node: Contraction, extents: dict[str, Any]) -> Iterator[Contraction]:
    axes = range(len(node.sizes))
    for axis in axes:
        longer = replace(node, sizes=[n + int(a == axis) for a, n in enumerate(node.sizes)])
        if axis not in node.summed or any(f.pointer in extents and f.strides[axis] for f in node.factors):
            yield longer
    yield replace(node, summed=(*node.summed, len(axes)))
    yield replace(node, written=len(node.members) + 1)
    if node.summed:
        yield replace(node, summed=node.summed[1:])
        member = node.members[0]
        moving = tuple(1 if a == node.summed[0] else s for a, s in enumerate(member.strides))
        yield replace(node, members=[member._replace(strides=moving), *node.members[1:]])
    if node.vector is not None:
        yield replace(node, vector=None)
    for k, access in enumerate(node.factors):
        for each in outside(access, extents, axes):
            yield replace(node, factors=tuple(each if i == k else f for i, f in enumerate(node.factors)))  # type: ignore[arg-type]
    for k, access in enumerate(node.members):
        for each in outside(access, extents, [a for a in axes if a not in node.summed]):
            yield replace(node, members=[each if i == k else m for i, m in enumerate(node.members)])


def call_mutations(call: Call, extents: dict[str, Any]) -> Iterator[Call]:
    for field in ("reads", "writes"):
        areas = getattr(call, field)
        for k, area in enumerate(areas):
            for each in outside(area.access, extents, range(len(area.sizes))):
                yield call._replace(**{field: (*areas[:k], area._replace(access=each), *areas[k + 1 :])})
            if area.access.pointer in extents:
                yield call._replace(**{field: (*areas[:k], area._replace(sizes=(area.sizes[0] + 1, *area.sizes[1:])), *areas[k + 1 :])})


def access_mutations(nest: Nest, extents: dict[str, Any]) -> Iterator[Nest]:
    """Every access outside of its buffer: a little before it, behind it, and with a stride that is too large."""
    outer = [axis for axis, size in zip(nest.order, nest.sizes, strict=True) if size != 1]
    for field in ("inputs", "outputs"):
        for k, access in enumerate(getattr(nest, field)):
            extent = extents.get(access.pointer)
            if extent is None or (field == "inputs" and k in nest.unread):
                continue
            size = (extent.stop - extent.start) // access.dtype.itemsize
            changed: list[Access] = [access._replace(offset=access.offset - size), access._replace(offset=access.offset + size)]
            for axis in outer:
                strides = list(access.strides)
                strides[axis] += size
                changed.append(access._replace(strides=tuple(strides)))
            for each in changed:
                items = list(getattr(nest, field))
                items[k] = each
                yield replace(nest, **{field: items})


def nest_mutations(nest: Nest) -> Iterator[Nest]:
    if nest.order:
        yield replace(nest, sizes=[*nest.sizes[:-1], nest.sizes[-1] + 1])
        yield replace(nest, sizes=[nest.sizes[0] + 1, *nest.sizes[1:]])
        yield replace(nest, order=nest.order[:-1])
    for k, r in enumerate(nest.reductions):
        moved = r.output._replace(strides=tuple(1 if axis in r.axes else s for axis, s in enumerate(r.output.strides)))
        if moved != r.output:
            yield replace(nest, reductions=[*nest.reductions[:k], replace(r, output=moved), *nest.reductions[k + 1 :]])


def mutations(program: LoopProgram) -> Iterator[tuple[str, LoopProgram]]:
    for number in range(len(list(lists(program.nodes)))):
        places = list(lists(program.nodes))[number]
        for k, node in enumerate(places):
            changed: list[Any] = []
            match node:
                case Loop():
                    changed = list(loop_mutations(node))
                case Vector():
                    changed = list(vector_mutations(node))
                case Nest():
                    changed = [*nest_mutations(node), *access_mutations(node, program.extents)]
                case Parallel():
                    changed = [replace(node, rows=node.rows + 1), replace(node, total=node.total + node.rows)]
                case Either():
                    changed = [node._replace(few=[]), node._replace(many=node.many * 2)]
                case Square():
                    changed = [node._replace(side=node.side * 2)]
                case Fold():
                    changed = [node._replace(width=node.width + 1), node._replace(reductions=())]
                case Row():
                    changed = [node._replace(widths=(0,))]
                case Tile():
                    changed = list(tile_mutations(node))
                case Contraction():
                    changed = list(contraction_mutations(node, program.extents))
                case Call():
                    changed = list(call_mutations(node, program.extents))
            for each in changed:
                yield f"{shown(node)} became {shown(each)}", replaced(program, number, k, [each])
            if isinstance(node, Loop | Vector | Row | Open | Fold | Spill | Close | Finish | Merge | Tile):
                if not is_deferred(node, places[k + 1 :]):
                    yield f"{shown(node)} was removed", replaced(program, number, k, [])
                yield f"{shown(node)} was doubled", replaced(program, number, k, [node, node])


def is_deferred(node: Node, rest: list[Node]) -> bool:
    """Whether a total that is not spilled here is combined with the next one, and spilled with it: the program is right without it."""
    return isinstance(node, Spill) and any(isinstance(later, Fold) and node.reduction in later.reductions for later in rest)


def replaced(program: LoopProgram, number: int, k: int, nodes: list[Any]) -> LoopProgram:
    """The program with other nodes for the k-th of one of its lists of nodes."""
    memo = {id(nest.body): nest.body for place in lists(program.nodes) for nest in place if isinstance(nest, Nest)}
    memo |= {id(node.store): node.store for place in lists(program.nodes) for node in place if isinstance(node, Contraction)}  # type: ignore[misc]
    other = copy.deepcopy(program, memo)
    list(lists(other.nodes))[number][k : k + 1] = nodes
    return other


def is_undecidable(what: str) -> bool:
    """A second `Row` computes the same addresses again; and the intended number of rows is known only to the planner."""
    return (what.startswith("Row(") and what.endswith("was doubled")) or (
        what.startswith("Loop(variable=row") and ("was" in what[-12:] or "stop=49" in what)
    )


FOR_ALL_SIZES = ["long row", "sums of rows", "rows", "pads", "product and what follows", "convolution"]


@pytest.mark.parametrize(
    ("name", "dynamic"), [*((name, False) for name in FUNCTIONS), *((name, True) for name in FOR_ALL_SIZES)],
    ids=[*FUNCTIONS, *(f"{name}, for all sizes" for name in FOR_ALL_SIZES)],
)  # fmt: skip
def test_broken_programs_are_rejected(name: str, dynamic: bool) -> None:
    count, accepted = 0, []
    for program in programs(name, dynamic):
        for what, broken in mutations(program):
            if is_undecidable(what):
                continue
            count += 1
            try:
                check(broken)
            except VerifyError:
                continue
            accepted.append(what)
    assert count >= 15
    assert not accepted, f"{len(accepted)} of {count} broken programs pass: {accepted[:3]}"


@pytest.mark.parametrize("dynamic", [False, True], ids=["known", "unknown"])
def test_chunks_may_not_write_the_same_elements(dynamic: bool) -> None:
    (program,) = programs("chunks", dynamic)
    parallel = next(node for node in program.nodes if isinstance(node, Parallel))
    nest = next(node for nodes in lists(parallel.body) for node in nodes if isinstance(node, Nest) and node.reductions)
    axis = nest.order[0]
    output = nest.outputs[0]
    nest.outputs[0] = output._replace(strides=tuple(0 if a == axis else s for a, s in enumerate(output.strides)))
    with pytest.raises(VerifyError, match="all chunks write to the same elements"):
        check(program)
    nest.outputs[0] = output
    partial = next(r for r in nest.reductions if r.output.pointer == "%work")
    partial.output = partial.output._replace(offset=partial.output.offset - CHUNK)
    with pytest.raises(VerifyError, match="all chunks write to the same elements"):
        check(program)


@pytest.mark.one_size("breaks a plan of known sizes")
def test_the_compiler_names_the_line_of_a_broken_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from adjit.codegen.loops import nest as planner

    widths = planner.NestPlan._widths
    monkeypatch.setattr(planner.NestPlan, "_widths", lambda self, size, axis: widths(self, size + 1, axis))
    with pytest.raises(Exception, match=r"loop program: .*\n.*test_checker\.py"):
        aj.function(lambda x: np.tanh(x) + 1.0)(sample(5, 7))
