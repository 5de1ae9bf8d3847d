"""What branches and loops of a traced function have in common: how the types of two values meet, and the errors when they do not.

Regions are built by `branches` and `loops`, for the functional forms (`control`) and for rewritten Python statements (`autograph`) alike. A
branch or a body is traced on its own. Python scalars give way in dtype and shape; anything else must have one type on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import DTypeError, ShapeError, TraceError
from adjit.ir.func import Block, Value
from adjit.ir.location import Location
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.types import BOOL, F64, I64, TensorType, as_dtype, promote, weak_example

from .frames import user_location
from .trace import Trace, Traced
from .traced import WeakSplat

Find: TypeAlias = Callable[[str, int], Location | None]  # (name, side) -> the line where that side gives the name its value


class Undefined:
    """What a Python variable holds that nothing was assigned to."""

    def __repr__(self) -> str:
        return "undefined"


UNDEFINED = Undefined()


class Entry(NamedTuple):
    """One thing that a region gives: a variable of the user's, or the result of a function."""

    name: str
    variable: str = ""  # as it stands in the source
    optional: bool = False  # read only where it was assigned, which adjit itself has arranged: any value will do elsewhere
    fresh: bool = False  # no trip of the loop reads it before assigning it

    def __str__(self) -> str:
        return f"`{self.name}`" if self.is_name else self.name

    @property
    def is_name(self) -> bool:
        """Whether it is spelled as in the source: `y`, `self.h`."""
        return self.name.replace(".", "").isidentifier()


class Wording(NamedTuple):
    """How messages speak of a construct: its name, its two sides, and the user's lines."""

    what: str  # "`if`"
    sides: tuple[str, str]  # "in the `if` branch", "in the `else` branch"
    find: Find = lambda name, side: None

    def side(self, entry: Entry, index: int, value: Any) -> str:
        location = self.find(entry.variable, index) or getattr(value, "location", None)
        return self.sides[index] + (f" ({location.file.rpartition('/')[2]}:{location.line})" if location else "")


class Kind(NamedTuple):
    """What a leaf is to the IR. A Python scalar is weak: it takes the dtype and the shape of what it meets."""

    type: TensorType
    weak: bool


_SCALARS = {bool: TensorType(BOOL), int: TensorType(I64), float: TensorType(F64)}


def kind_of(leaf: Any) -> Kind | None:
    """None for what no array holds: text, functions, objects."""
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


def join(a: Kind, b: Kind) -> Kind | None:
    """The one kind for both; None where there is none."""
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
    """A leaf as an operand of exactly this type, emitted into the active trace where it takes an op."""
    if type(leaf) in _SCALARS:
        return Literal(leaf, kind.type)
    x = ops.broadcast_to(ops.cast(as_operand(leaf), kind.type.dtype), kind.type.shape)
    return Literal(x.value, x.type) if isinstance(x, Literal) else x


def blank(like: Any) -> Any:
    """A value of the kind of another, for where nobody will read it."""
    kind = kind_of(like)
    return like if kind is None else (WeakSplat if kind.weak else Literal)(0, kind.type)


def is_traced(x: Any) -> bool:
    """Whether only a run of the compiled function will know x. A variable is, while a function is traced."""
    return isinstance(x, Value) or (isinstance(x, Operand) and isinstance(as_operand(x), Value))


def predicate(x: Any, what: str) -> Operand:
    """A traced condition as a bool scalar."""
    operand = as_operand(x)
    if operand.type.size != 1:
        raise ShapeError(f"{what}: the truth of {operand.type} is ambiguous; use .any() or .all()").at(user_location())
    return ops.cast(ops.reshape(operand, ()), BOOL)


def same_static(a: Any, b: Any) -> bool:
    """Whether two leaves are one and the same constant. Arrays of NumPy's are, to the bit: a trip that is traced gets copies of them."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Operand):
        return False
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype) and a.shape == b.shape and a.tobytes() == b.tobytes()
    try:
        return repr(a) == repr(b) if isinstance(a, float) else bool(a == b)  # -0.0 is not 0.0
    except Exception:
        return False  # a comparison of the user's that fails makes two values different, no more


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


def mismatch(words: Wording, entry: Entry, path: str, values: tuple[Any, Any], advice: str) -> TraceError:
    sides = [f"{describe(v)} {words.side(entry, i, v)}" for i, v in enumerate(values)]
    name = f"`{entry.name}{path}`" if entry.is_name else f"{entry.name}{path}"
    return TraceError(f"{name} is {sides[0]}, but {sides[1]}; {advice}").at(user_location())


def name_of(entry: Entry, path: str = "") -> str | None:
    return entry.name if entry.is_name and not path else None


def hold(trace: Trace, results: Sequence[Value], names: Sequence[str | None], kinds: Sequence[Kind]) -> None:
    """Give the results of a region the names and the weakness of what they stand for."""
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


class Attempt:
    """What is traced from here on can be taken back, as if it had never been."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.count = len(trace.stmts)
        self.written = dict(trace.written)

    @property
    def statements(self) -> int:
        return len(self.trace.stmts) - self.count

    def undo(self) -> None:
        trace = self.trace
        nowhere = trace.region()  # the values taken back belong to a region that is around nothing
        for stmt in trace.stmts[self.count :]:
            for result in stmt.results:
                if isinstance(result, Traced):
                    result.owner = nowhere
        del trace.stmts[self.count :]
        trace.written = dict(self.written)
        trace.keep_names()
