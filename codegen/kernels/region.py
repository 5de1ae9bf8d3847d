"""A fused region as a loop nest: its accesses, and the body that computes its statements for a few elements at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from adjit.ir.func import Block, Stmt
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.fused import loop_domain
from adjit.ir.ops.maps import Map, element_cost
from adjit.ir.ops.reduce import Reduce
from adjit.ir.ops.shape import Pad
from adjit.ir.records import record, replace
from adjit.ir.types import Shape

from ..llvm.lanes import Reg
from ..loops.boxes import Border, add_boxes
from ..loops.chunks import Limits, add_nest
from ..loops.ir import Access, Chunk, LoopProgram, Reduction
from ..loops.nest import NestSpec
from ..sizes import native_shape
from .literals import NO_LITERALS, Taken


@record
class RegionBody:
    """The statements of a region; values are identified by their ids."""

    block: Block
    inputs: dict[int, int]  # value, or the result of a pad -> number of the input
    outputs: dict[int, int]
    reduced: dict[int, int]
    pads: dict[int, int]  # result of a pad -> number of the pad
    numbers: Taken
    beyond: frozenset[int] = frozenset()  # pads of which only the constant is read, not the operand

    def outside(self, pads: frozenset[int]) -> RegionBody:
        return replace(self, beyond=pads)

    def __call__(self, chunk: Chunk) -> None:
        env: dict[int, Reg] = {}
        inputs, numbers = self.inputs, self.numbers

        def read(x: Operand, padded: Operand | None = None) -> Reg:
            if isinstance(x, Literal):
                return chunk.emit.const(x.type.dtype, x.value)
            return env[id(x)] if id(x) in env else chunk.load(inputs[id(x if padded is None else padded)])

        def operand(s: Stmt, k: int) -> Reg:
            place = (id(s), k)
            return numbers.read(chunk.emit, place, s.args[k]) if place in numbers.slots else read(s.args[k])

        text = chunk.emit.text
        before = text.location
        for s in self.block.stmts:
            text.locate(s.location)
            if s.op.is_reduction:
                if id(s.result) in self.reduced:
                    chunk.reduce(self.reduced[id(s.result)], read(s.args[0]))
                continue
            if isinstance(s.op, Pad):
                around = Literal(s.op.value, s.result.type)
                value = read(around if self.pads[id(s.result)] in self.beyond else s.args[0], s.result)
            else:
                assert isinstance(s.op, Map)
                value = s.op.scalar(chunk.emit, *(operand(s, k) for k in range(len(s.args))))
            env[id(s.result)] = value
            if id(s.result) in self.outputs:
                chunk.put(self.outputs[id(s.result)], value)
        text.locate(before)


@record
class RegionNest:
    """The nest that computes a fused region, and the edges of its pads."""

    spec: NestSpec
    body: RegionBody
    borders: list[Border]

    def add_to(self, program: LoopProgram, limits: Limits) -> None:
        if self.borders:
            add_boxes(program, self.spec, self.body, self.borders, limits)
        else:
            add_nest(program, self.spec, limits)


def region_of(stmt: Stmt, access: Callable[[Operand], Access], numbers: Taken = NO_LITERALS) -> RegionNest:
    """The nest of a `fuse` statement; `numbers` are the literals that are read from a table."""
    (block,) = stmt.blocks
    domain = native_shape(loop_domain(block.stmts[0]).shape)
    pads = [(s, s.op) for s in block.stmts if isinstance(s.op, Pad)]
    inputs, accesses = _inputs(block, access)
    outer = {id(inner): result for inner, result in zip(block.results, stmt.results, strict=True)}
    reductions: dict[int, Reduction] = {}
    outputs: dict[int, Operand] = {}
    for s in block.stmts:
        result = outer.get(id(s.result))
        if result is not None and isinstance(s.op, Reduce):
            reductions[id(s.result)] = Reduction(s.op, s.op.axes, _reduced_access(access(result), domain, s.op.axes))
        elif result is not None:
            outputs[id(s.result)] = result
    body = RegionBody(block, inputs, _numbered(outputs), _numbered(reductions), {id(s.result): k for k, (s, _) in enumerate(pads)}, numbers)
    borders = [Border(native_shape(pad.low), native_shape(s.args[0].type.shape), inputs.get(id(s.result))) for s, pad in pads]
    written, read = [access(v) for v in outputs.values()], {a.pointer for a in accesses}
    spec = NestSpec(
        domain,
        accesses,
        written,
        list(reductions.values()),
        body,
        body_ops(block.stmts),
        frozenset(axis for s in block.stmts if (axis := s.op.position_axis) is not None),
        frozenset(k for k, a in enumerate(written) if a.pointer in read),
    )
    return RegionNest(spec, body, borders)


def body_ops(stmts: Sequence[Stmt]) -> int:
    """Number of operations in elementwise statements, counted in simple instructions."""
    return round(sum(element_cost(s).flops if s.op.is_elementwise else 1 for s in stmts))


def _numbered(keys: Iterable[int]) -> dict[int, int]:
    return {key: k for k, key in enumerate(keys)}


def _inputs(block: Block, access: Callable[[Operand], Access]) -> tuple[dict[int, int], list[Access]]:
    """The inputs of a region and their accesses. A pad reads its operand at a different offset, so that operand is a separate input."""
    free = {id(v) for v in block.free()}
    numbers: dict[int, int] = {}
    accesses: list[Access] = []
    for s in block.stmts:
        for x in s.args:
            key = id(s.result if s.op.shifts else x)
            if id(x) in free and key not in numbers:
                numbers[key] = len(accesses)
                accesses.append(access(x))
    return numbers, accesses


def _reduced_access(output: Access, domain: Shape, axes: tuple[int, ...]) -> Access:
    """The output of a reduction as an access over the whole domain, with stride 0 along the reduced axes."""
    kept = iter(output.strides)
    return output._replace(strides=tuple(0 if axis in axes else next(kept) for axis in range(len(domain))))
