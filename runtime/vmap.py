"""`vmap`: turns a function of one example into a function of a batch.

The function is traced on one example and the trace is batched (`passes.batch`); the result becomes part of the enclosing trace or, eagerly,
is compiled and called. Tapes see the batched statements, or the single call. Arrays that the function closes over become parameters,
whatever their size: derivatives reach them, and programs that differ only in their values are compiled once.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from adjit.ir.arrays import as_array
from adjit.ir.builder import Builder
from adjit.ir.errors import AdjitError, DTypeError, ShapeError, TraceError
from adjit.ir.func import Block, Func, Value
from adjit.ir.locks import new_lock
from adjit.ir.operand import Concrete, Literal, Operand, as_operand
from adjit.ir.ops.base import Op
from adjit.ir.ops.custom import CustomGradient
from adjit.ir.ops.shape import lead, move_lead, move_to_lead
from adjit.ir.records import NamedTuple
from adjit.ir.tracebacks import boundary
from adjit.ir.types import TensorType
from adjit.passes.rewrite import walk
from adjit.tracer.convert import present
from adjit.tracer.frames import definition, raised_at
from adjit.tracer.pytree import TreeDef, find_node_type, flatten
from adjit.tracer.trace import Trace, Traced, current_trace, is_result

from .executable import Executable, call
from .internal import guarded
from .recording import Recorder, listening
from .tensor import Tensor, tensor
from .variable import Store, Variable

if TYPE_CHECKING:
    from adjit.passes.batch import Marked

KEPT = 512  # number of compiled programs of eager vmaps to cache


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0) -> Callable[..., Any]:
    """Return a function that maps `fn` over an axis of its arguments, computing all examples at once.

    `in_axes` is the axis of each positional array argument to map over: one integer for all, or a tuple with an integer (or a structure of
    integers) for each argument; None means that all examples share the argument. Keyword arguments are mapped over their first axis.
    `out_axes` gives, in the same way, the position of the mapped axis in the results.

    >>> vmap(np.dot, in_axes=(0, None))(np.ones((2, 3)), np.ones(3))
    Tensor([3., 3.], f64[2])
    """

    @boundary
    @functools.wraps(fn)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        call = Mapping(fn, in_axes, out_axes, args, kwargs)
        trace = current_trace()
        return call.run_eagerly() if trace is None else call.run_traced(trace)

    return mapped


class Example(NamedTuple):
    """The function traced on one example: its block, the structure of its result, and the leaves of it that are not arrays."""

    block: Block
    tree: TreeDef
    static: dict[int, Any]


class Mapping:
    """One call of a mapped function."""

    def __init__(self, fn: Callable[..., Any], in_axes: Any, out_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.fn = fn
        self.name = str(getattr(fn, "__name__", type(fn).__name__))
        self.out_axes = out_axes
        self.leaves, self.tree = flatten((args, kwargs))
        axes = [*spread_axes(in_axes, args, f"vmap of {self.name}: in_axes"), *(0 for _ in flatten(kwargs)[0])]
        self.size = -1
        self.inputs: list[Operand] = []  # those with an axis to map over, which comes first in `example` and `moved`
        self.axes: list[int] = []
        self.places: list[int] = []
        for i, (leaf, axis) in enumerate(zip(self.leaves, axes, strict=True)):
            if axis is not None and not is_static(leaf):
                self.take(i, leaf, axis)
            elif isinstance(leaf, np.ndarray | np.generic):
                self.leaves[i] = tensor(leaf)
        if self.size < 0:
            raise ShapeError(f"vmap of {self.name}: no argument has an axis to map over: in_axes is {in_axes!r}")

    def take(self, i: int, leaf: Any, axis: int) -> None:
        what = f"vmap of {self.name}: argument {self.path(i)}"
        operand = as_operand(leaf) if isinstance(leaf, Operand) else tensor(leaf)
        if not -operand.ndim <= axis < operand.ndim:
            hint = "share it between examples with in_axes=None" if not operand.ndim else "change in_axes"
            raise ShapeError(f"{what} is {operand.type}, which has no axis {axis}; {hint}")
        count = operand.shape[axis]
        if self.size not in (-1, count):
            raise ShapeError(f"{what} has {count} examples along axis {axis}, others {self.size}")
        self.size = count
        self.inputs.append(operand)
        self.axes.append(axis % operand.ndim)
        self.places.append(i)

    def path(self, leaf: int) -> str:
        (_, where), (_, first), *_ = self.tree.key_paths()[leaf]
        return f"{first!r}" if where == 1 else str(first)

    # ---- one example

    def example(self, trace: Trace) -> Example:
        """Trace the function inside `trace`, on parameters created for it."""
        from adjit.tracer.control import converted  # noqa: PLC0415 - with `passes.batch`, a tenth of the cost of `import adjit`

        location = definition(self.fn)
        leaves = list(self.leaves)
        for i, x, axis in zip(self.places, self.inputs, self.axes, strict=True):
            param = trace.parameter(example_type(x, axis), x.name if isinstance(x, Value) else None, x.weak, location)
            trace.params.append(param)
            leaves[i] = param
        with trace:
            args, kwargs = self.tree.unflatten(leaves)
            out, tree = flatten(converted(self.fn)(*args, **kwargs))
            results = [as_operand(leaf) for leaf in out if is_result(leaf)]
            for result in results:
                if isinstance(result, Traced):
                    trace.check_reachable(result, "return")
            block = trace.finish(results)
        if trace.written:
            words = f"vmap of {self.name}: it assigns a Variable, which all examples share; return the value instead"
            raise TraceError(words).at(location)
        return Example(block, tree, {i: leaf for i, leaf in enumerate(out) if not is_result(leaf)})

    def batched(self, example: Example, args: Sequence[Operand], more: Sequence[Operand] = ()) -> list[Operand]:
        """Return the results of all examples, with the mapped axes at `out_axes`; emitted into the active builder."""
        from adjit.passes.batch import batch_block  # noqa: PLC0415 - see `example`

        lead_args = [move_to_lead(x, axis) for x, axis in zip(args, self.axes, strict=True)]
        found = guarded(batch_block)(example.block, [*lead_args, *more], [True] * len(args) + [False] * len(more), self.size)
        axes = spread_axes(self.out_axes, example.tree.unflatten([0] * example.tree.leaves), f"vmap of {self.name}: out_axes")
        places = [axis for i, axis in enumerate(axes) if i not in example.static]
        return [self.placed(marked, axis) for marked, axis in zip(found, places, strict=True)]

    def placed(self, marked: Marked, axis: int | None) -> Operand:
        x, has = marked
        if axis is None:
            if has:
                raise ShapeError(f"vmap of {self.name}: out_axes is None for a result that differs between examples")
            return x
        rank = x.ndim + (not has)
        if not -rank <= axis < rank:
            raise ShapeError(
                f"vmap of {self.name}: out_axes={axis} is out of range for a result of rank {rank}, the axis of examples included"
            )
        return move_lead(x if has else lead(x, self.size), axis % rank)

    def rebuilt(self, example: Example, results: Sequence[Operand]) -> Any:
        given = iter(results)
        return example.tree.unflatten([example.static[i] if i in example.static else next(given) for i in range(example.tree.leaves)])

    # ---- all examples

    def run_traced(self, trace: Trace) -> Any:
        example = self.example(trace.region())
        builder = Builder((), trace)
        builder.value_class = Traced
        with builder:
            results = self.batched(example, self.inputs)
        for stmt in builder.stmts:
            # a statement holds plain literals, like those that `Trace.emit` creates
            stmt.args = tuple(Literal(a.value, a.type) if isinstance(a, Literal) else a for a in stmt.args)
            for result in stmt.results:
                if isinstance(result, Traced):
                    result.owner, result.location = trace, stmt.location
        trace.stmts.extend(builder.stmts)
        return self.rebuilt(example, [present(r) for r in results])

    def run_eagerly(self) -> Any:
        trace = Trace(self.name)
        adopted = Adopted(trace)
        trace.adopt = adopted
        try:
            with tensors_alone():
                example = self.example(trace)
            cells = dict(zip(trace.cells, (p for _, p in trace._cells.values()), strict=True))
        except AdjitError as error:
            error.at(raised_at(error.__traceback__))
            raise
        finally:
            trace.forget()
        params = [Value(x.type, p.name) for x, p in zip(self.inputs, example.block.params, strict=True)]
        others = [*adopted.params(), *cells.values()]
        block = Block([*example.block.params, *others], example.block.stmts, example.block.results)
        with Builder([*params, *others]) as builder:
            results = self.batched(example._replace(block=block), params, others)
            func = Func(f"{self.name}.vmap", builder.finish(results), location=definition(self.fn))
        reads = [Variable.of(cell).read_operand() for cell in cells if isinstance(cell, Store)]
        return self.rebuilt(example, list(call(compiled(func), *self.inputs, *adopted.operands(), *reads)))


class Adopted:
    """Turns each array that a trace uses into a parameter, and stores which."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.found: dict[int, tuple[Concrete, Traced]] = {}

    def __call__(self, x: Concrete) -> Operand:
        key = id(x) if isinstance(x, Tensor) else id(x.buffer)  # tapes know tensors by identity; a raw array has a new operand at each use
        if key not in self.found:
            self.found[key] = (x, self.trace.parameter(x.type, "captured"))
        return self.found[key][1]

    def params(self) -> list[Traced]:
        return [param for _, param in self.found.values()]

    def operands(self) -> list[Operand]:
        return [x if isinstance(x, Tensor) else tensor(x.buffer) for x, _ in self.found.values()]


class Tensors(Recorder):
    """An eager tape as seen by a function being traced: it records ops on tensors, but not variables, which are traced."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def applied(self, op: Op, args: tuple[Operand, ...], results: tuple[Operand, ...]) -> None:
        self.recorder.applied(op, args, results)

    def stand_ins(self, args: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return args

    def read(self, variable: Variable, value: Operand) -> None: ...

    def last_read(self, store: Store) -> Operand | None:
        return None

    @property
    def strict(self) -> bool:  # type: ignore[override]
        return self.recorder.strict

    def watches(self, x: Operand) -> bool:
        return self.recorder.watches(x)


@contextmanager
def tensors_alone() -> Iterator[None]:
    before = listening.recorders
    listening.recorders = tuple(map(Tensors, before))
    try:
        yield
    finally:
        listening.recorders = before


# ---- compiled programs

_programs: OrderedDict[Any, Executable] = OrderedDict()
_lock = new_lock()


def compiled(func: Func) -> Executable:
    """Return the executable of a function, cached by its text."""
    text = str(func)
    # user-defined derivatives that have not been traced yet are missing from the text
    hidden = tuple(id(stmt.op) for stmt in walk(func.block) if isinstance(stmt.op, CustomGradient)) if " later" in text else ()
    key = (text, hidden)
    with _lock:
        found = _programs.get(key)
        if found is None:
            found = _programs[key] = Executable(func)
            if len(_programs) > KEPT:
                _programs.popitem(last=False)
        _programs.move_to_end(key)
        return found


# ---- axes


def spread_axes(axes: Any, structure: Any, what: str) -> list[int | None]:
    """Return an axis for each leaf, from one axis for all or one for each part of the structure."""
    if axes is None or isinstance(axes, int):
        return [axes] * flatten(structure)[1].leaves
    ours, theirs = find_node_type(type(structure)), find_node_type(type(axes))
    if ours is None or theirs is None:
        raise ShapeError(f"{what}: {axes!r} does not have the structure {flatten(structure)[1]}; axes are integers, None, or tuples")
    (parts, _), (given, _) = ours.flatten(structure), theirs.flatten(axes)
    parts, given = list(parts), list(given)
    if len(parts) != len(given):
        raise ShapeError(f"{what}: {axes!r} names {len(given)} axes for {len(parts)} values")
    return [axis for part, each in zip(parts, given, strict=True) for axis in spread_axes(each, part, what)]


def is_static(leaf: Any) -> bool:
    """Whether a leaf is not an array, and therefore the same for all examples."""
    if isinstance(leaf, Operand | np.ndarray | np.generic | int | float | complex):
        return False
    try:
        as_array(leaf)
    except (DTypeError, TypeError, ValueError):
        return True
    return False


def example_type(x: Operand, axis: int) -> TensorType:
    return x.type.with_shape(x.shape[:axis] + x.shape[axis + 1 :])
