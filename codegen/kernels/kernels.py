"""Compile one statement of an optimised Func to one native kernel: a fused region, or an op that lowers itself to loops."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from adjit.ir.errors import AdjitError, UnsupportedError
from adjit.ir.func import Stmt, Value
from adjit.ir.location import Location
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.control import hosted_by
from adjit.ir.ops.maps import Map
from adjit.ir.target import Target
from adjit.ir.types import Shape

from ..llvm.lanes import Reg
from ..loops.ir import Access, LoopProgram
from ..loops.nest import NestPlan, NestSpec
from .emitter import VectorEmitter
from .kernel import Context, Kernel
from .loop_kernel import LoopKernel
from .region import body_ops, region_of
from .repeats import look, lowered_look
from .window import Hosted, Strided


def lines_of(stmts: Iterable[Stmt], target: Target) -> tuple[Location | None, ...]:
    """The difference between kernels with equal instructions: their lines, if these are recorded."""
    return tuple(s.location for s in stmts) if target.debug_lines else ()


def fused_kernel(stmt: Stmt, context: Context) -> Kernel:
    """Compile a `fuse` region to one loop nest, or to the kernel of the op that hosts the region."""
    host = hosted_by(stmt)
    if host is not None:
        return hosting_kernel(stmt, host, context)
    kernel = Kernel(context)
    kernel.come_from(stmt)
    if context.literals is None:
        kernel.add_region(region_of(stmt, kernel.access))
        return kernel
    numbers = context.literals.taken(stmt.blocks[0], kernel.pointer_to)
    region = region_of(stmt, kernel.access, numbers)
    lines = lines_of((stmt, *stmt.blocks[0].stmts), context.target)
    seen = context.awake, context.is_final, lines, look(stmt.blocks[0], region.spec, numbers), tuple(region.borders)
    if seen in context.repeats:
        return context.repeats[seen].repeated(kernel)
    kernel.add_region(region)
    context.repeats[seen] = kernel
    return kernel


def lowered_kernel(stmt: Stmt, context: Context) -> LoopKernel:
    """The kernel of an op that lowers itself."""
    if not hasattr(stmt.op, "lower"):
        raise UnsupportedError(f"{stmt.op.name} has no native code yet").at(stmt.location)
    kernel = LoopKernel(context)
    outs, ins = (tuple(map(kernel.window, values)) for values in (stmt.results, stmt.args))
    key = (lowered_look(stmt.op, (*outs, *ins)), lines_of([stmt], context.target)) if context.repeats_ops else None
    return _lowered(kernel, context, stmt, key, outs[0] if len(outs) == 1 else outs, *ins)


def _lowered(
    kernel: LoopKernel, context: Context, stmt: Stmt, key: Hashable | None, out: Strided | tuple[Strided, ...], *args: Strided
) -> LoopKernel:
    """Let an op lower itself, unless a kernel with the same key exists."""
    seen = context.awake, context.is_final, key
    if seen in context.repeats:
        context.repeats[seen].repeated(kernel)
        return kernel
    kernel.come_from(stmt)
    kernel.error = stmt.op.error
    try:
        stmt.op.lower(kernel, out, *args)  # type: ignore[attr-defined]
    except AdjitError as error:
        raise error.at(stmt.location) from None
    if key is not None and not kernel.failures:  # failures name the statement's line
        context.repeats[seen] = kernel
    return kernel


def hosting_kernel(stmt: Stmt, host: Stmt, context: Context) -> LoopKernel:
    """The kernel of a `fuse` region around an op that lowers itself: the rest of the region is applied wherever it stores its result."""
    kernel, (block,) = LoopKernel(context), stmt.blocks
    made = {id(s.result) for s in block.stmts}
    rest = [s for s in block.stmts if s is not host]
    inputs = {id(a): a for s in rest for a in s.args if isinstance(a, Value) and id(a) not in made}
    numbers = {key: k for k, key in enumerate(inputs)}

    def body(emit: VectorEmitter, value: Reg, load: Callable[[int], Reg]) -> list[Reg]:
        env = {id(host.result): value}

        def read(x: Operand) -> Reg:
            if isinstance(x, Literal):
                return emit.const(x.type.dtype, x.value)
            return env[id(x)] if id(x) in env else load(numbers[id(x)])

        before = emit.text.location
        for s in rest:
            assert isinstance(s.op, Map)
            emit.text.locate(s.location)
            env[id(s.result)] = s.op.scalar(emit, *map(read, s.args))
        emit.text.locate(before)
        return [read(x) for x in block.results]

    dtype = host.result.type.dtype
    read, written = [kernel.window(v) for v in inputs.values()], [kernel.window(r) for r in stmt.results]
    taken = {w.pointer for w in read}
    spare = next((k for k, w in enumerate(written) if w.type.dtype == dtype and w.strides[-1:] == (1,) and w.pointer not in taken), None)
    args = [kernel.window(a) for a in host.args]
    seen = lowered_look(host.op, (*written, *read, *args), block) if context.repeats_ops else None
    key = None if seen is None else (seen, lines_of(block.stmts, context.target))
    return _lowered(kernel, context, host, key, Hosted(kernel.text, dtype, written, read, body, body_ops(rest), spare), *args)


def copy_kernel(target: Access, source: Access, shape: Shape, context: Context) -> Kernel:
    """A kernel that copies the window at %p1 to the window at %p0."""
    kernel = Kernel(context)
    kernel.take_pointers(2)
    kernel.add_nest(NestSpec(shape, [source], [target], [], lambda chunk: chunk.put(0, chunk.load(0))))
    return kernel


def add_kernel(target: Access, source: Access, shape: Shape, context: Context) -> Kernel:
    """A kernel that computes target += source, with the pointers %p0 and %p1."""
    kernel = Kernel(context)
    kernel.take_pointers(2)
    body = lambda chunk: chunk.put(0, chunk.emit.add(chunk.load(0), chunk.load(1)))  # noqa: E731
    spec = NestSpec(shape, [target, source], [target], [], body, aliased=frozenset((0,)))
    kernel.run(LoopProgram(NestPlan(kernel.vector_bytes, spec).nodes()))
    return kernel
