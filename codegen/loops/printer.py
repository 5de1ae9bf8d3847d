"""The text of a loop program, as `inspect().loops` shows it.

The body of a nest is shown by running it on an emitter that writes down what it is asked to emit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from adjit.ir.expr import Expr
from adjit.ir.target import USUAL
from adjit.ir.types import BOOL, I64, DType

from ..llvm.lanes import Reg, Text
from .ir import (
    Access,
    Area,
    Call,
    Chunk,
    Close,
    Contraction,
    Cuts,
    Either,
    Finish,
    Fold,
    Local,
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
    index_of,
)


def print_program(name: str, program: LoopProgram) -> str:
    """The text of a kernel's program, ending in a newline."""
    sizes = ", ".join(f"{pointer}: {extent.stop - extent.start!s} bytes" for pointer, extent in program.extents.items())
    work = f", work: {program.work_bytes!s} bytes" if program.work_bytes else ""
    return "\n".join([f"kernel {name}({sizes}{work}) {{", *_indented(_lines(program.nodes)), "}", ""])


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _block(head: str, lines: Iterable[str]) -> list[str]:
    return [f"{head} {{", *_indented(lines), "}"]


def _lines(nodes: Sequence[Node], nest: Nest | None = None) -> list[str]:
    return [line for node in nodes for line in _node(node, nest)]


def _node(node: Node, nest: Nest | None) -> list[str]:
    match node:
        case Nest():
            return _block(f"nest {' x '.join(map(str, node.sizes)) or 'of one element'}", _lines(node.nodes, node))
        case Parallel():
            return _block(f"parallel chunk in 0..{node.count!s}", _lines(node.body))
        case Either(size, limit, few, many):
            return [*_block(f"if {size!s} <= {limit}", _lines(few)), *_block("else", _lines(many))]
        case Local():
            return [f"local {node.pointer}: {node.nbytes!s} bytes"]
        case Loop():
            return _block(_head(node), _lines(node.body, nest))
        case Contraction():
            return _contraction(node)
        case Call():
            written, read = (", ".join(map(_area, areas)) for areas in (node.writes, node.reads))
            return [f"call {node.routine} writes {written} reads {read}"]
    assert nest is not None
    return _inside(node, nest)


def _head(loop: Loop) -> str:
    step = f" step {loop.step}" if loop.step != 1 else ""
    carries = ", ".join(f"{_sum(c.reduction, c.piece)} x{c.width}" for c in loop.carries)
    return f"for {loop.variable} in {loop.start!s}..{loop.stop!s}{step}{f' carry {carries}' if carries else ''}"


def _inside(node: Node, nest: Nest) -> list[str]:
    match node:
        case Row():
            return []
        case Vector(at, width, piece, stop):
            return _block(f"vector {at} x{width}{'' if stop is None else f' before {stop!s}'}", _body(nest, at, piece))
        case Square(side, inputs):
            transposed = ", ".join(nest.inputs[k].pointer for k in inputs)
            return _block(f"square {side} x {side} transposing {transposed}", _body(nest, 0, 0))
        case Open(k):
            return [f"slot{k} = {nest.reductions[k].op.identity(nest.reductions[k].output.dtype)}"]
        case Fold(reductions, width):
            return [f"total{k} = fold {_sum(k, 0)} x{width}" for k in reductions]
        case Spill(k):
            return [f"slot{k} = {nest.reductions[k].op.name} slot{k}, total{k}"]
        case Close(k):
            return [f"total{k} = slot{k}"]
        case Finish(k, adding):
            out = _element(nest, nest.reductions[k].output, 0)
            return [f"{out} = {nest.reductions[k].op.name} {out}, total{k}" if adding else f"{out} = total{k}"]
        case Merge(k, vector):
            out = _element(nest, nest.reductions[k].output, vector.at)
            return [f"{out} = {nest.reductions[k].op.name} {out}, {_sum(k, vector.piece)}"]
    raise TypeError(f"a {type(node).__name__} inside a nest")


def _area(area: Area) -> str:
    whole = ", ".join(f"{index_of(axis)} in 0..{size!s}" for axis, size in enumerate(area.sizes))
    return f"{area.access.pointer}[{_index(area.access, range(len(area.sizes)))}] for {whole}"


def _contraction(node: Contraction) -> list[str]:
    """A contraction: its loops, and for each tile what is summed up and stored."""
    kept = [n for axis, n in enumerate(node.sizes) if axis not in node.summed]
    over = [f"{index_of(axis)} in 0..{node.sizes[axis]!s}" for axis in node.summed]
    return _block(f"contraction {' x '.join(map(str, kept)) or 'to one element'}", _tiles(node, node.nodes, ", ".join(over)))


def _tiles(node: Contraction, nodes: Sequence[Node], over: str) -> list[str]:
    out: list[str] = []
    for inner in nodes:
        if isinstance(inner, Tile):
            head = f"tile {len(inner.rows)} x {'+'.join(map(str, inner.widths))}{f' sum over {over}' if over else ''}"
            out += _block(head, _stored(node))
        elif isinstance(inner, Cuts):
            parts = [line for n, body in inner.bodies.items() for line in _block(f"of {n}", _tiles(node, body, over))]
            out += _block(f"cut {inner.variable} in 0..{inner.size!s}", parts)
        else:
            assert isinstance(inner, Loop)
            out += _block(_head(inner), _tiles(node, inner.body, over))
    return out


def _stored(node: Contraction) -> list[str]:
    """The computation of a tile for its first element."""
    emit = _Recorder()
    x, y = (f"{a.pointer}[{_index(a, range(len(node.sizes)))}]" for a in node.factors)
    members = [f"{a.pointer}[{_index(a, range(len(node.sizes)))}]" for a in node.members]
    total = emit.define(node.dtype, f"sum {x} * {y}")

    def load(k: int) -> Reg:
        return emit.define(node.members[k].dtype, f"load {members[k]}")

    def store(k: int, value: Reg) -> None:
        emit.lines.append(f"store {members[k]}, {value.name}")

    if node.adding:
        total = emit.add(load(0), total)
    node.store(emit, total, load, store)  # type: ignore[arg-type]
    return emit.lines


def _index(access: Access, axes: Iterable[int]) -> Expr:
    index = access.offset
    for axis in axes:
        index = index + index_of(axis) * access.strides[axis]
    return index


def _sum(k: int, piece: int) -> str:
    return f"sum{k}.{piece}" if piece else f"sum{k}"


def _element(nest: Nest, access: Access, at: Expr) -> str:
    """The element of an access at the position of the loops around, and `at` on the innermost axis."""
    index = access.offset
    for axis in nest.order:
        index = index + (at if axis == nest.order[-1] else index_of(axis)) * access.strides[axis]
    return f"{access.pointer}[{index}]"


def _body(nest: Nest, at: Expr, piece: int) -> list[str]:
    """The body of a nest at a position of its innermost axis."""
    emit = _Recorder()
    loaded: dict[int, Reg] = {}

    def load(k: int) -> Reg:
        if k not in loaded:
            loaded[k] = emit.define(nest.inputs[k].dtype, f"load {_element(nest, nest.inputs[k], at)}")
        return loaded[k]

    def put(k: int, value: Reg) -> None:
        emit.lines.append(f"store {_element(nest, nest.outputs[k], at)}, {value.name}")

    def reduce(k: int, value: Reg) -> None:
        emit.lines.append(f"{nest.reductions[k].op.name} {_sum(k, piece)}, {value.name}")

    nest.body(Chunk(emit, load, put, reduce))  # type: ignore[arg-type]
    return emit.lines


class _Recorder:
    """An `Emitter` that writes down the operations in the order in which they are emitted."""

    width = 1

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.text = Text(USUAL)  # of loads from the table of literals
        self._count = 0

    def define(self, dtype: DType, operation: str) -> Reg:
        name = f"%{self._count}"
        self._count += 1
        self.lines.append(f"{name} = {operation}")
        return Reg(name, dtype)

    def const(self, dtype: DType, value: Any) -> Reg:
        return Reg(str(value), dtype)

    def like(self, x: Reg, value: Any) -> Reg:
        return Reg(str(value), x.dtype)

    def index(self, axis: int) -> Reg:
        return Reg(f"index{axis}", I64)

    def strict(self) -> _Recorder:
        return self

    def call(self, function: str, *args: Reg) -> Reg:
        return self.define(args[0].dtype, f"{function} {', '.join(x.name for x in args)}")

    def iterate(self, limit: int, state: Sequence[Reg], step: Callable[..., tuple[Reg, Sequence[Reg]]]) -> list[Reg]:
        self.lines.append(f"at most {limit} times:")
        done, results = step(*state)
        self.lines.append(f"until {done.name}")
        return list(results)

    def where_any(self, condition: Reg, compute: Callable[[], Sequence[Reg]], otherwise: Sequence[Reg]) -> list[Reg]:
        self.lines.append(f"if any {condition.name}:")
        results = [self.select(condition, new, old) for new, old in zip(compute(), otherwise, strict=True)]
        self.lines.append("end")
        return results

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def operation(*operands: Any) -> Reg:
            registers = [x for x in operands if isinstance(x, Reg)]
            given = next((x for x in operands if isinstance(x, np.dtype)), None)
            dtype = BOOL if name in ("compare", "unordered") else given or registers[-1].dtype
            words = ", ".join(x.name if isinstance(x, Reg) else str(x) for x in operands)
            return self.define(dtype, f"{name.rstrip('_')} {words}")

        return operation
