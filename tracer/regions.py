"""Common parts of branches and loops in a traced function: how the types of two values are unified, and the errors when they do not match.

Regions are built by `branches` and `loops`, both for the functional forms (`control`) and for converted Python statements (`autograph`). A
branch or a body is traced separately. Python scalars adapt in dtype and shape; everything else must have the same type on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError, TraceError, VaryingSizeError
from adjit.ir.func import Block, Value, count
from adjit.ir.location import Location
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.records import NamedTuple
from adjit.ir.types import BOOL, C128, F64, I64, TensorType, as_dtype, promote, weak_example

from .frames import is_from_outside, raised_at, user_location
from .trace import Cell, Trace, Traced
from .traced import WeakSplat

Find: TypeAlias = Callable[[str, int], Location | None]  # (name, side) -> the line where that side assigns the name


class Undefined:
    """The value of a Python variable that has not been assigned."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


class RegionOutput(NamedTuple):
    """One output of a region: a user's variable, or the result of a function."""

    name: str
    variable: str = ""  # as written in the source
    optional: bool = False  # read only where it was assigned, which adjit guarantees: elsewhere it may have any value
    fresh: bool = False  # no iteration reads it before assigning it
    inner: bool = False  # only iterations read it, nothing after the loop

    def __str__(self) -> str:
        return f"`{self.name}`" if self.name.partition("[")[0].replace(".", "").isidentifier() else self.name

    @property
    def is_name(self) -> bool:
        """Whether the name is an expression in the source: `y`, `self.h`."""
        return self.name.replace(".", "").isidentifier()


class Wording(NamedTuple):
    """How messages describe a construct: its name, its two sides, and the user's lines."""

    what: str  # "`if`"
    sides: tuple[str, str]  # "in the `if` branch", "in the `else` branch"
    find: Find = lambda name, side: None

    def side(self, entry: RegionOutput, index: int, value: Any) -> str:
        location = self.find(entry.variable, index) or getattr(value, "location", None)
        return self.sides[index] + (f" ({location.short})" if location else "")


class Kind(NamedTuple):
    """The type of a leaf in the IR. A Python scalar is weak: it takes the dtype and shape of the value that it is combined with."""

    type: TensorType
    weak: bool


_SCALARS = {bool: TensorType(BOOL), int: TensorType(I64), float: TensorType(F64), complex: TensorType(C128)}


def kind_of(leaf: Any) -> Kind | None:
    """Return the kind of a leaf; None for values that no array can hold: strings, functions, objects."""
    if isinstance(leaf, Operand):
        return Kind(leaf.type, leaf.weak)
    scalar = _SCALARS.get(type(leaf))
    if scalar is not None:
        return Kind(scalar, True)
    if isinstance(leaf, np.ndarray | np.generic):
        try:
            return Kind(TensorType(as_dtype(leaf.dtype), leaf.shape), False)
        except DTypeError:
            return None
    return None


def differ_in_shape(a: Kind, b: Kind) -> bool:
    """Whether two arrays are of one dtype, and not of one shape."""
    return a.type.dtype == b.type.dtype and a.type.shape != b.type.shape and not (a.weak or b.weak)


def join(a: Kind, b: Kind) -> Kind | None:
    """Return the common kind of both; None if there is none."""
    weak = a.weak and b.weak
    if a.type == b.type:
        return Kind(a.type, weak)
    if not (a.weak or b.weak):
        return None
    dtype = promote(*(weak_example(k.type.dtype) if k.weak else k.type.dtype for k in (a, b)))
    for one, other in ((a, b), (b, a)):
        if one.type.shape == other.type.shape or (one.weak and not one.type.shape):
            return Kind(TensorType(dtype, other.type.shape), weak)
    return None


def conform(leaf: Any, kind: Kind) -> Operand:
    """Return a leaf as an operand of exactly this type, emitting ops into the active trace if necessary."""
    if type(leaf) in _SCALARS:
        return Literal(leaf, kind.type)
    x = ops.broadcast_to(ops.cast(as_operand(leaf), kind.type.dtype), kind.type.shape)
    return Literal(x.value, x.type) if isinstance(x, Literal) else x


def blank(like: Any) -> Any:
    """Return a placeholder of the same kind as another value, for where it is not read."""
    kind = kind_of(like)
    return like if kind is None else (WeakSplat if kind.weak else Literal)(0, kind.type)


def is_traced(x: Any) -> bool:
    """Whether the value of x is known only at run time. This includes variables while a function is traced."""
    return isinstance(x, Value) or (isinstance(x, Operand) and isinstance(as_operand(x), Value))


@contextmanager
def reading_assigned(what: str) -> Iterator[None]:
    """Trace a part of a construct, which Python may never run: a variable that it reads before it is assigned raises our own error.

    Python's message would call it a free variable, which it is in rewritten code.
    """
    try:
        yield
    except NameError as error:
        if not (isinstance(error, UnboundLocalError) or "free variable" in str(error)):  # an unknown name is the user's own mistake
            raise
        name = str(error).split("'")[1]
        raise TraceError(
            f"`{name}` is read before it is assigned; all parts of a traced {what} are traced, also those that do not run: "
            f"assign `{name}` before it"
        ).at(raised_at(error.__traceback__)) from None


def predicate(x: Any, what: str) -> Operand:
    """Return a traced condition as a bool scalar."""
    operand = as_operand(x)
    if operand.type.size != 1:
        raise ShapeError(
            f"{what}: the truth of {operand.type} is ambiguous; use .any() or .all(), or np.where(condition, a, b) for each element"
        ).at(user_location())
    return ops.cast(ops.reshape(operand, ()), BOOL)


def same_static(a: Any, b: Any) -> bool:
    """Whether two leaves are the same constant. NumPy arrays are compared bitwise, since a traced iteration gets copies of them."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Operand):
        return False
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype) and a.shape == b.shape and a.tobytes() == b.tobytes()
    try:
        return repr(a) == repr(b) if isinstance(a, float | complex) else bool(a == b)  # -0.0 is not 0.0
    except Exception as error:
        if is_from_outside(error):
            raise
        return False  # if the user's comparison fails, the values are merely considered different


def describe(value: Any) -> str:
    if value is UNDEFINED:
        return "not assigned"
    kind = kind_of(value)
    if kind is not None:
        return f"{kind.type}" + (f" (a Python {type(value).__name__})" if type(value) in _SCALARS else "")
    if isinstance(value, list | tuple | dict):
        keys = f" ({', '.join(map(repr, list(value)[:5]))}{', ...' if len(value) > 5 else ''})" if isinstance(value, dict) and value else ""
        return f"a {type(value).__name__} of {len(value)}{keys}"
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


def mismatch(words: Wording, entry: RegionOutput, path: str, values: tuple[Any, Any], advice: str, varies: bool = False) -> TraceError:
    texts = [describe(value) for value in values]
    if texts[0] == texts[1] and texts[0].startswith("a ") and not isinstance(values[0], list | tuple | dict):
        texts[1] = f"another {texts[1][2:]}"
        name = type(values[0]).__name__
        advice += (
            f". The attributes of two objects are joined if {name} is a dataclass, or registered with aj.register_pytree_node; those of "
            "one object may change"
        )
    sides = [f"{text} {words.side(entry, i, value)}" for i, (text, value) in enumerate(zip(texts, values, strict=True))]
    message = f"{entry._replace(name=entry.name + path)} is {sides[0]}, but {sides[1]}; {advice}{hint(values)}"
    return (VaryingSizeError if varies else TraceError)(message).at(user_location())


def hint(values: tuple[Any, Any]) -> str:
    """What to write in place of two values that are no numbers, as far as that is known."""
    a, b = values
    if (a is None) != (b is None) and a is not UNDEFINED and b is not UNDEFINED:
        return "; begin with a value of the same kind in place of None, such as a number that cannot occur (math.nan, -1)"
    if isinstance(a, dict) and isinstance(b, dict) and set(a) != set(b):
        return "; put the same keys into it before"
    return ""


def name_of(entry: RegionOutput, path: str = "") -> str | None:
    return entry.name if entry.is_name and not path else None


def hold(trace: Trace, results: Sequence[Value], names: Sequence[str | None], kinds: Sequence[Kind]) -> None:
    """Give the results of a region the names and the weak typing of the values that they represent."""
    for result, name, kind in zip(results, names, kinds, strict=True):
        result.name = name
        if isinstance(result, Traced):
            result.weak = kind.weak
    trace.keep_names()


def finish(region: Trace, results: Sequence[Operand], params: Sequence[Value] = ()) -> Block:
    for x in results:
        if isinstance(x, Traced):
            region.check_reachable(x, "yield")
    region.params = list(params)
    return region.finish(results)


def same_blocks(a: Block, b: Block, renamed: dict[int, Operand] | None = None) -> bool:
    """Whether two blocks compute the same, statement by statement; `renamed` maps ids of values of the first to values of the second."""
    names = {} if renamed is None else renamed

    def bind(xs: Sequence[Operand], ys: Sequence[Operand]) -> bool:
        names.update((id(x), y) for x, y in zip(xs, ys))
        return [x.type for x in xs] == [y.type for y in ys]

    def match(xs: Sequence[Operand], ys: Sequence[Operand]) -> bool:
        pairs = zip(xs, ys)
        return len(xs) == len(ys) and all(x.same(y) if isinstance(x, Literal) else names.get(id(x), x) is y for x, y in pairs)

    if not bind(a.params, b.params) or len(a.stmts) != len(b.stmts):
        return False
    for ours, theirs in zip(a.stmts, b.stmts, strict=True):
        if ours.op != theirs.op or not match(ours.args, theirs.args) or len(ours.blocks) != len(theirs.blocks):
            return False
        if not all(same_blocks(x, y, names) for x, y in zip(ours.blocks, theirs.blocks, strict=True)):
            return False
        if not bind(ours.results, theirs.results):
            return False
    return match(a.results, b.results)


class Attempt:
    """A point in a trace to which it can be rolled back."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.count = len(trace.stmts)
        self.written = dict(trace.written)
        self.overwritten = dict(trace.overwritten.known)

    @property
    def statements(self) -> int:
        """The number of statements since then, with those of their blocks."""
        return count(self.trace.stmts[self.count :])

    def undo(self) -> None:
        trace = self.trace
        nowhere = trace.region()  # the discarded values now belong to a region that encloses nothing
        for stmt in trace.stmts[self.count :]:
            for result in stmt.results:
                if isinstance(result, Traced):
                    result.owner = nowhere
        del trace.stmts[self.count :]
        trace.written = dict(self.written)
        trace.overwritten.known = dict(self.overwritten)
        trace.keep_names()


def check_shapes(cell: Cell, first: Operand, second: Operand, *places: str) -> None:
    """Raise an error for a variable that has different shapes in two places that must agree."""
    if first.type != second.type:
        raise ShapeError(
            f"variable {cell.name or ''!r} is {first.type} {places[0]} and {second.type} {places[1]}: its shape cannot depend on what is "
            "decided while the function runs; pad the value, or assign it outside of the function"
        ).at(getattr(second, "location", None) or user_location())
