"""Runs a Python function on traced values and returns the program that was recorded.

Owns `Trace` (the builder behind traced values: the user's lines and variable names, captured arrays, variables) and `trace_function`. It
neither decides what is traced and what is static nor runs anything; that is the runtime's task.

A `Trace` with a parent builds a region (a branch, the body of a loop): it can use the values and variables of the enclosing traces.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType, MethodType
from typing import Any, Protocol

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.errors import AdjitError, DTypeError, FoundSizeError, ShapeError, SizeWanted, TraceError, UnplannedError, VaryingSizeError
from adjit.ir.found_sizes import MESSAGE, NEVER, Unfinished
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.location import Location
from adjit.ir.operand import Concrete, Literal, Operand, as_operand
from adjit.ir.ops.base import Array, Op, apply
from adjit.ir.ops.effects import Assert
from adjit.ir.ops.logic import Assigned, Detach
from adjit.ir.ops.maps import Map
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import BOOL, I64, PYTHON, TensorType

from .bindings import Binding, read_by
from .contents import holds_still
from .frames import code_of, definition, raised_at, recurs_at, user_location, user_site
from .given import Given
from .pytree import TreeDef, dotted, flatten
from .sharing import SHARING, Doubles, Overwritten, memory_of, remember_view
from .traced import Splat as Splat
from .traced import Traced as Traced
from .traced import leaked

SIZES = "adjit_sizes"  # a hidden argument: arrays of the sizes that a call assumes


class Cell(Protocol):
    """A variable, as seen by a trace."""

    @property
    def type(self) -> TensorType: ...
    @property
    def name(self) -> str | None: ...
    def takes(self, shape: Sequence[int]) -> bool: ...


class LoopRules(Protocol):
    """What another frontend demands of the variables of a loop that tensors control, however it is traced."""

    def controls(self, iterable: Any) -> bool: ...
    @property
    def advice(self) -> str: ...
    def check(self, trace: Trace, names: Sequence[str], before: Sequence[Any], after: Sequence[Any], iterable: Any) -> None: ...
    def may_vary(self, value: Any) -> bool: ...


class Trace(Builder):
    """A builder with user context: where each op was written, the name of its result, and which variables and arrays it uses."""

    value_class: type[Traced] = Traced  # other frontends use a subclass
    loop_rules: LoopRules | None = None
    python_prints = False  # whether Python's `print` prints while tracing, as in TensorFlow, rather than in every run

    def __init__(self, name: str = "", parent: Trace | None = None) -> None:
        super().__init__(parent=parent)
        self.name = name
        self.written: dict[int, Operand] = {}  # id of a cell -> its current value, if this trace or region wrote it
        self.overwritten: Overwritten = Overwritten(parent.overwritten if parent is not None else None)
        self.dead_end = False  # whether this region always raises: its results are never read
        self._callee: FrameType | None = None
        self._named: tuple[Value, ...] = ()
        if parent is None:
            self.capture = self.capture_array
            self.writes: list[tuple[Value, Operand]] = []  # values assigned to variables that had another shape before
            self.arguments: Sequence[Traced] = ()
            self.functions: dict[int, FunctionType] = {}  # the user's functions that have been called, by id
            self.doubles: Doubles = {}
            self.parts: dict[int, tuple[Operand, Any]] = {}  # id of a value -> it and the part of a variable that it was read from
            self.sources: dict[int, Any] = {}  # random number generators created by the function itself
            self._cells: dict[int, tuple[Cell, Traced]] = {}
            self._captures: list[tuple[Array, Array, Traced]] = []
            self._captured: dict[int, int] = {}  # id of an array -> index of its last capture in the list
            self.sizes: Sequence[int] | None = None  # those that follow from values, as the call assumes them: see `ir.found_sizes`
            self.found: dict[int, tuple[Operand, int]] = {}  # id of a value -> it and the size that it is assumed to be
            self.stand_ins: dict[int, tuple[Operand, Value]] = {}  # id of a constant that a tape watches -> it and its replacement

    def __exit__(self, *exc: object) -> None:
        super().__exit__(*exc)
        self._callee, self._named = None, ()  # a frame would keep all its locals alive

    def root(self) -> Trace:
        """Return the trace of the whole function, from inside any region."""
        trace = self
        while isinstance(trace.parent, Trace):
            trace = trace.parent
        return trace

    def region(self) -> Trace:
        """Create a nested trace, for a branch or the body of a loop."""
        region = Trace(self.name, self)
        region.location, region.phase, region.origin, region.value_class = self.location, self.phase, self.origin, self.value_class
        return region

    # ---- statements

    def keep_names(self) -> None:
        """Make the names given so far final."""
        self._named = ()

    def place(self) -> tuple[Location | None, str | None]:
        if self.phase == "backward":
            return self.location, None
        site = user_site(4)  # past this method, the two `emit`s, and their caller
        if site is None:
            return self.location, None
        self._callee, before = site.callee, self._callee
        if site.callee is not before:
            self._named = ()
        return site.location, site.name

    def apply(self, op: Op, args: tuple[Operand, ...]) -> Any:
        out = super().apply(op, args)
        # operators on Python numbers; NumPy's functions take them as arrays (`to_operand`), and derivatives are arrays
        if isinstance(op, Map) and isinstance(out, Traced) and args and self.phase != "backward" and all(a.weak for a in args):
            out.weak = out.type.dtype in PYTHON  # a value cast to the dtype of an array is no longer a Python number
        return out

    def emit(
        self, op: Op, args: Sequence[Operand], blocks: tuple[Block, ...] = (), types: Sequence[TensorType] | None = None
    ) -> tuple[Value, ...]:
        for arg in args:
            if isinstance(arg, Traced) and arg.owner is not self:
                self.check_reachable(arg, op.name)
        if self.overwritten and not self.derives:
            self.overwritten.check(args)
        # a statement holds plain literals: derivative rules do not depend on whether a scalar was weakly typed
        plain = [self.plain(a) if isinstance(a, Splat) else a for a in args]
        results = super().emit(op, plain, blocks, types)
        location = self.stmts[-1].location
        for result in results:
            if isinstance(result, Traced):
                result.owner, result.location = self, location
        if isinstance(op, SHARING) and isinstance(args[0], Traced):
            remember_view(op, args, results[0])
        if results and results[0].name:
            # one user call may emit several ops: the name belongs to its return value, the last of them
            for earlier in self._named:
                earlier.name = None
            self._named = results
        return results

    def plain(self, splat: Splat) -> Operand:
        found = self.stand_in(splat)
        return Literal(splat.value, splat.type) if found is splat else found

    def check_reachable(self, value: Traced, what: str) -> None:
        """Raise an error for values of other traces, and of regions that do not enclose this one."""
        if not any(builder is value.owner for builder in self.around()):
            raise leaked(value, what, self).at(user_location())

    def stand_in(self, operand: Operand) -> Operand:
        known = self.root().stand_ins.get(id(operand))
        return operand if known is None else known[1]

    def constant(self, operand: Operand) -> Operand:
        if self.overwritten and not self.derives and isinstance(operand, Concrete):
            self.overwritten.check([operand.buffer])
        found = self.stand_in(operand)
        return super().constant(operand) if found is operand else found

    @property
    def derives(self) -> bool:
        """Whether a pass is emitting derivatives, which use the values that the function used, whether or not they were replaced since."""
        return self.phase == "backward" or self.location is not None

    def overwrite(self, old: Operand | Array, new: Operand) -> None:
        if new is old:
            return  # the write changed nothing
        kept = {id(value) for trace in self.around() if isinstance(trace, Trace) for value in trace.written.values()}
        self.overwritten.add(old, new, user_location(), kept | {id(parameter) for _, parameter in self.root()._cells.values()})

    def finish(self, results: Sequence[Operand], saving: Sequence[Operand] = ()) -> Block:
        if not self.derives:
            self.overwritten.check(results, returned=True)
        return super().finish(results, saving)

    # ---- external values

    def parameter(self, type: TensorType, name: str | None = None, weak: bool = False, location: Location | None = None) -> Traced:
        """Create a parameter of this trace. It is not yet in `params`, whose order matters."""
        value = self.value_class(type, name, weak)
        value.owner, value.location = self, location
        return value

    def capture_array(self, array: Array) -> Operand:
        """Capture a closed-over array too large to print as a hidden parameter, with its current contents.

        An array that was modified since it was captured is captured again.
        """
        root = self.root()
        at = root._captured.get(id(array))
        if at is None or not holds_still(array, root._captures[at][1]):
            frozen = np.array(array, order="C")
            frozen.setflags(write=False)
            parameter = root.parameter(Concrete(frozen).type, "captured", location=user_location())
            # keep the array itself too, so that its id is not reused during tracing
            at = root._captured[id(array)] = len(root._captures)
            root._captures.append((array, frozen, parameter))
        return root._captures[at][2]

    def read(self, cell: Cell) -> Operand:
        """Return the current value of a variable: what was last written to it, or a parameter."""
        trace: Builder | None = self
        while isinstance(trace, Trace):
            found = trace.written.get(id(cell))
            if found is not None:
                return found
            trace = trace.parent
        return self.cell_parameter(cell)

    def cell_parameter(self, cell: Cell) -> Traced:
        """Return the parameter that passes a variable's value into the function."""
        root = self.root()
        if id(cell) not in root._cells:
            root._cells[id(cell)] = (cell, root.parameter(cell.type, cell.name, location=user_location()))
        return root._cells[id(cell)][1]

    def write(self, cell: Cell, operand: Operand) -> Operand:
        """Set the variable's value from here on. Gradients pass to the variable, not to the assigned value, as in TensorFlow."""
        name = cell.name or "variable"
        if not cell.takes(operand.type.shape):
            raise ShapeError(f"assign: {name} is {cell.type}, the new value {operand.type}").at(user_location())
        if operand.type.dtype != cell.type.dtype:
            raise DTypeError(f"assign: {name} is {cell.type}, the new value {operand.type}; cast it with .astype").at(user_location())
        old = self.read(cell)
        is_alike = operand.type.shape == old.type.shape
        (value,) = self.emit(Assigned(), (operand, old)) if is_alike else self.emit(Detach(), (operand,))
        value.name, self._named = cell.name, ()
        self.written[id(cell)] = value
        if self is self.root() and not is_alike:
            self.writes.append((self.cell_parameter(cell), value))
        return value

    def found_size(self, count: Operand, otherwise: str) -> int:
        if self is not self.root():
            raise VaryingSizeError(f"{otherwise}; in a traced branch or loop it may differ each time").at(user_location())
        if self.sizes is None:
            raise SizeWanted(otherwise).at(user_location())
        if id(count) not in self.found:
            site, number = len(self.found), ops.cast(count, I64)
            assumed = self.sizes[site] if site < len(self.sizes) else NEVER
            apply(Assert(MESSAGE.format(site), FoundSizeError.__name__), ops.equal(number, as_operand(assumed)), number)
            if assumed is NEVER:
                raise Unfinished
            self.found[id(count)] = count, assumed
        return self.found[id(count)][1]

    # ---- completion

    def finish_function(self, arguments: Sequence[Traced], results: Sequence[Operand], location: Location | None) -> Func:
        """Return the traced function: its parameters are the arguments, then variables, then captured arrays."""
        for result in results:
            if isinstance(result, Traced):
                self.check_reachable(result, "return")
        block = self.finish([*results, *(self.written[id(cell)] for cell in self.reshaped())])  # may capture arrays, so do params after it
        params = [*arguments, *(p for _, p in self._cells.values()), *(p for *_, p in self._captures)]
        apart = set(map(id, self.reshaped()))
        updates = [(self._cells[key][1], value) for key, value in self.written.items() if key not in apart]
        return Func(self.name, Block(params, block.stmts, block.results), updates=updates, location=location, writes=self.writes)

    def reshaped(self) -> list[Cell]:
        """Return the variables whose last value has another shape than their value at the start of the function."""
        known = ((*self._cells[key], value) for key, value in self.written.items())
        return [cell for cell, given, value in known if value.type.shape != given.type.shape]

    @property
    def cells(self) -> list[Cell]:
        return [cell for cell, _ in self.root()._cells.values()]

    @property
    def captures(self) -> list[Array]:
        return [frozen for _, frozen, _ in self.root()._captures]

    def forget(self) -> None:
        """Release everything: a leaked value must not keep the whole trace alive."""
        self.stmts: list[Stmt] = []
        self.written = {}
        self.writes = []
        self._cells, self._captures, self._captured, self.stand_ins, self.arguments, self.doubles, self.parts = {}, [], {}, {}, (), {}, {}
        self.sources = {}
        self.functions = {}
        self.found = {}


def current_trace() -> Trace | None:
    """Return the innermost active trace of this thread."""
    builder = current_builder()
    while builder is not None and not isinstance(builder, Trace):
        builder = builder.parent
    return builder


class Spec:
    """Represents an argument leaf that is traced; `weak` for a Python scalar."""

    __slots__ = ("type", "weak", "name")

    def __init__(self, type: TensorType, weak: bool = False, name: str | None = None) -> None:
        self.type = type
        self.weak = weak
        self.name = name

    def __repr__(self) -> str:
        return f"Spec({self.type}{', weak' if self.weak else ''}{f', {self.name}' if self.name else ''})"


class TracedProgram:
    """A traced function. The parameters of `func` are the traced argument leaves, then `cells`, then `captures`.

    Its results are the leaves of the return value, then the new values of the variables that are `reshaped`.
    """

    __slots__ = ("func", "arguments", "cells", "captures", "out_tree", "static", "bindings", "reshaped", "is_whole", "weak")

    def __init__(
        self, func: Func, arguments: int, cells: list[Cell], captures: list[Array], out_tree: TreeDef, static: tuple[tuple[int, Any], ...],
        bindings: Sequence[Binding] = (), reshaped: Sequence[Cell] = (), is_whole: bool = True, weak: Sequence[bool] = (),
    ) -> None:  # fmt: skip
        self.func = func
        self.arguments = arguments  # number of parameters that are argument leaves
        self.cells = cells
        self.captures = captures
        self.out_tree = out_tree
        self.static = static  # (position, object) of the result leaves that are not arrays
        self.bindings = bindings  # the names that the function read from outside
        self.reshaped = tuple(reshaped)
        self.is_whole = is_whole  # whether the trace has reached the function's end: see `Unfinished`
        # For each result, whether it is a Python number. Not in the IR, whose meaning it does not change: equal code is shared.
        self.weak = (*weak, *(False for _ in func.results[len(weak) :]))

    @property
    def returned(self) -> Sequence[Operand]:
        """The results that are part of the return value."""
        return self.func.results[: len(self.func.results) - len(self.reshaped)]

    def rebuild(self, results: Sequence[Any]) -> Any:
        """Build the function's return value from the values of `func.results`."""
        leaves = list(results)[: len(self.returned)]
        for position, leaf in self.static:
            leaves.insert(position, leaf)
        return leaves[0] if self.out_tree.entries[0] is None else self.out_tree.unflatten(leaves)


def trace_function(fn: Callable[..., Any], tree: TreeDef, leaves: Sequence[Any], name: str | None = None) -> TracedProgram:
    """Run `fn` on traced values. `tree` unflattens to (args, kwargs); leaves that are a `Spec` are traced, all others are passed unchanged.

    An exception leaves no state behind; adjit's own exceptions carry the user's line.
    """
    trace = Trace(name or getattr(fn, "__name__", None) or type(fn).__name__)
    names = argument_names(fn, tree)
    location = definition(fn)
    given = [
        trace.parameter(leaf.type, leaf.name or hint, leaf.weak, location) if isinstance(leaf, Spec) else leaf
        for leaf, hint in zip(leaves, names, strict=True)
    ]
    own = fn.__func__ if isinstance(fn, MethodType) else fn
    if isinstance(own, FunctionType):
        trace.functions[id(own)] = own
    arguments = trace.arguments = [x for x, leaf in zip(given, leaves, strict=True) if isinstance(leaf, Spec)]
    try:
        with trace:
            args, kwargs = tree.unflatten(given)
            trace.sizes = [x.type.shape[0] for x in kwargs.pop(SIZES)] if SIZES in kwargs else None
            structures = Given((args, kwargs))
            try:
                result = fn(*args, **kwargs)
                structures.check(trace.name, result, location)
                out, out_tree = flatten(result, in_order=True)
                check_arguments(trace, arguments, out)
                is_whole = True
            except Unfinished:
                out, out_tree = flatten(None)
                is_whole = False
            results = [as_operand(leaf) for leaf in out if is_result(leaf)]
            weak = [stays_number(leaf) for leaf in out if is_result(leaf)]
            trace.overwritten.check_constants(trace, results, location)
            func = trace.finish_function(arguments, results, location)
            static = tuple((i, leaf) for i, leaf in enumerate(out) if not is_result(leaf))
            for _, leaf in static:
                check_opaque(leaf, location)
        trace.overwritten.check_outside()  # when the trace no longer refers to the user's frames
        objects = [leaf for leaf in leaves if not isinstance(leaf, Spec)]
        if isinstance(fn, MethodType):
            objects.append(fn.__self__)
        outside = read_by(trace.functions.values(), objects)
        return TracedProgram(func, len(arguments), trace.cells, trace.captures, out_tree, static, outside, trace.reshaped(), is_whole, weak)
    except AdjitError as error:
        error.at(raised_at(error.__traceback__))
        raise
    except ValueError as error:
        if not isinstance(error.__cause__, TraceError):
            raise
        raise TraceError(  # NumPy's own message is "setting an array element with a sequence"
            "a traced value cannot be stored in a NumPy array that is not a local variable of the function: assign the array to one "
            "(y = ...), write y[i] = value, and store y back"
        ).at(raised_at(error.__traceback__)) from None
    except RecursionError as error:
        raise UnplannedError(
            f"{trace.name}: infinite recursion while tracing: a traced value cannot end a recursion, because both branches are traced; "
            "write a loop, or let a Python number decide"
        ).at(recurs_at(error.__traceback__)) from None
    finally:
        trace.forget()


def check_arguments(trace: Trace, arguments: Sequence[Traced], results: Sequence[Any]) -> None:
    """Raise an error for an argument that is changed in place and not returned: in NumPy, the caller would see that."""
    returned = {id(array) for leaf in results for array in (leaf, *memory_of(leaf))} if trace.overwritten else set()
    for argument in arguments:
        found = trace.overwritten.known.get(id(argument))
        if found is not None and id(trace.overwritten.current(argument)) not in returned:
            name = argument.name or "x"
            raise TraceError(
                f"the argument {name} is changed in place, as by `{name} += 1`, and not returned: with NumPy the caller's array changes, "
                f"with a compiled function it does not; write {name} = {name} + 1, or return {name}"
            ).at(found.where)


def is_result(leaf: Any) -> bool:
    """Whether a leaf of a function's result is computed, rather than returned as the same object."""
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind in "biufc"
    return isinstance(leaf, Operand | bool | int | float | complex)


def stays_number(leaf: Any) -> bool:
    """Whether a leaf of a function's result is a Python number for those who compute with it. A bool is an array, as NumPy's bools are."""
    if isinstance(leaf, Operand):
        return leaf.weak and leaf.type.dtype != BOOL
    return type(leaf) in (int, float, complex) or is_symbolic(leaf)


def check_opaque(leaf: Any, location: Location | None) -> None:
    """Raise an error for a result that hides traced values where they could not be replaced by computed ones."""
    if hasattr(type(leaf), "refuse"):  # text that is known only when the function runs
        leaf.refuse()
    if isinstance(leaf, Iterator | Awaitable) or is_ours_inside(leaf):
        raise TraceError(
            f"the result is a {type(leaf).__name__}, which would use traced values after the trace has ended; return a list of its items"
        ).at(location)
    held = leaf if isinstance(leaf, set | frozenset) else getattr(leaf, "__dict__", {}).values()
    if any(isinstance(x, Traced) for x in held):
        raise TraceError(
            f"the result holds traced values inside a {type(leaf).__name__}, which is not a list, tuple or dict; return one, or make it "
            "one of the structures with aj.register_pytree_node"
        ).at(location)


def is_ours_inside(leaf: Any) -> bool:
    """Whether this is one of the tracer's own objects, such as those that replace `zip(...)` in converted code."""
    return type(leaf).__module__.startswith("adjit.tracer.autograph") and not isinstance(leaf, str)


def takes_anything(code: CodeType | None) -> bool:
    """Whether a function's signature is `(*args, **kwargs)`."""
    return code is not None and code.co_argcount + code.co_kwonlyargcount == 0 and code.co_flags & 12 == 12


def argument_names(fn: Callable[..., Any], tree: TreeDef) -> list[str]:
    """Return names for the leaves of (args, kwargs), from the names of the function's parameters: `x`, `params.w`, `batch.0`."""
    while hasattr(fn, "__wrapped__") and takes_anything(code_of(fn)):  # `grad(f)` and user decorators pass on the arguments of f
        fn = fn.__wrapped__
    code = code_of(fn)
    positional: tuple[str, ...] = ()
    rest = "arg"
    if code is not None:
        positional = code.co_varnames[: code.co_argcount]
        if code.co_flags & 4:  # *args
            rest = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
        if getattr(fn, "__self__", None) is not None or not hasattr(fn, "__code__"):
            positional = positional[1:] if positional[:1] in (("self",), ("cls",)) else positional
    out = []
    for (_, where), (_, first), *path in tree.key_paths():
        if where == 1:
            head = str(first)
        else:
            head = positional[first] if first < len(positional) else f"{rest}.{first - len(positional)}"
        out.append(head + dotted(path))
    return out
