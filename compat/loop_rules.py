"""TensorFlow's rules for loops that tensors control: the variables keep their dtypes, structures, and (unless declared) their shapes.

A loop whose trip count is known while tracing is unrolled, and Python would let its variables change. TensorFlow refuses that in any loop
over a tensor or a dataset, and in a `while` with a tensor as its condition; so does this module, with TensorFlow's messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adjit.ir.errors import TraceError
from adjit.ir.operand import Operand
from adjit.ir.sizes import is_symbolic
from adjit.tracer.frames import user_location
from adjit.tracer.pytree import flatten
from adjit.tracer.regions import UNDEFINED
from adjit.tracer.trace import Trace, current_trace

from .data import Dataset
from .dtypes import as_dtype
from .ranges import Range
from .shape import TensorShape

DECLARE = "Use tf.autograph.experimental.set_loop_options to set shape invariants."


class TensorLoops:
    """The rules for the loops of one trace; `invariants` are pairs of a value at the start of an iteration, and its declared shape.

    `sizes_known`: whether the sizes of all arguments are known in TensorFlow too: those that an `input_signature` leaves open may change.
    """

    advice = "tf.autograph.experimental.set_loop_options(shape_invariants=...) declares a shape that may change"

    def __init__(self, sizes_known: bool) -> None:
        self.sizes_known = sizes_known
        self.invariants: list[tuple[Any, TensorShape]] = []

    def declare(self, pairs: Sequence[tuple[Any, Any]]) -> None:
        self.invariants += [(value, TensorShape(shape)) for value, shape in pairs]

    def declared(self, value: Any) -> TensorShape | None:
        """The shape that the last iteration has declared for a value."""
        return next((shape for known, shape in reversed(self.invariants) if known is value), None)

    def may_vary(self, value: Any) -> bool:
        return self.declared(value) is not None

    def controls(self, iterable: Any) -> bool:
        return isinstance(iterable, Operand | Range | Dataset)

    def check(self, trace: Trace, names: Sequence[str], before: Sequence[Any], after: Sequence[Any], iterable: Any) -> None:
        """Check an iteration. Loops over datasets may change shapes, as in TensorFlow."""
        # a size that the call finds is unknown in TensorFlow, but may be a number here
        keeps_shapes = self.sizes_known and not trace.root().found and not isinstance(iterable, Dataset)
        for name, old, new in zip(names, before, after, strict=True):
            if old is not new and old is not UNDEFINED and new is not UNDEFINED:
                self._check_one(name, old, new, keeps_shapes)

    def _check_one(self, name: str, old: Any, new: Any, keeps_shapes: bool) -> None:
        if isinstance(old, list) and isinstance(new, list):  # lists may grow in loops here
            return
        (olds, tree), (news, other) = flatten(old), flatten(new)
        if not tree.same(other):
            raise TraceError(f"'{name}' does not have the same nested structure after one iteration.").at(user_location())
        for one, two in zip(olds, news, strict=True):
            if strong(one) and (isinstance(two, Range) or strong(two)):
                self._check_leaf(name, one, two, keeps_shapes)

    def _check_leaf(self, name: str, old: Any, new: Any, keeps_shapes: bool) -> None:
        (dtype, shape), (new_dtype, new_shape), declared = static_type(old), static_type(new), self.declared(old)
        if new_dtype not in (dtype, None):
            wrong = f"has dtype {dtype} before the loop, but dtype {new_dtype} after one iteration"
        elif declared is not None and not fits(new_shape, declared):
            wrong = f"has shape {new_shape} after one iteration, which does not conform with the shape invariant {declared}."
        elif keeps_shapes and declared is None and not fits(new_shape, shape):
            wrong = f"has shape {shape} before the loop, but shape {new_shape} after one iteration. {DECLARE}"
        else:
            return
        raise TraceError(f"'{name}' {wrong}").at(user_location())


def static_type(x: Any) -> tuple[str | None, TensorShape]:
    """The static dtype and shape that a tensor would have in TensorFlow while tracing."""
    if isinstance(x, Range):
        return None if x.kind is None else as_dtype(x.kind).name, TensorShape([None])
    return as_dtype(x.type.dtype).name, TensorShape(n if isinstance(n, int) and not is_symbolic(n) else None for n in x.type.shape)


def fits(shape: TensorShape, bound: TensorShape) -> bool:
    """Whether every tensor of one static shape is also of another, which may be less specific."""
    if bound.rank is None:
        return True
    return len(shape) == len(bound) and all(there in (None, here) for here, there in zip(shape, bound, strict=True))


def strong(x: Any) -> bool:
    """Whether this is a tensor, rather than a Python number that takes the type of the other operand."""
    return isinstance(x, Operand) and not x.weak


def set_loop_options(
    parallel_iterations: Any = None, swap_memory: Any = None, maximum_iterations: Any = None, shape_invariants: Any = None
) -> None:
    """At the start of a loop's body: `shape_invariants=[(x, tf.TensorShape([None]))]` declares that iterations may change the shape of `x`.

    `maximum_iterations` is not supported; the other options are hints without effect here.
    """
    if maximum_iterations is not None:
        raise NotImplementedError("set_loop_options(maximum_iterations=): leave the loop with `break` instead")
    trace = current_trace()
    rules = None if trace is None else trace.root().loop_rules
    if isinstance(rules, TensorLoops):
        rules.declare(shape_invariants or ())
