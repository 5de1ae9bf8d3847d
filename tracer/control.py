"""Control flow as functions: `cond`, `switch`, `while_loop`, `fori_loop`, `scan` and `map`.

With known values they run as the plain Python shown in their docstrings; while a function is traced they emit `if`, `for` and `while`
regions. A loop stays a loop, whatever its trip count. Operands, carries and results are structures of arrays and numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import ShapeError, TraceError
from adjit.ir.operand import Literal, Operand, as_operand
from adjit.ir.ops.base import apply
from adjit.ir.ops.index import Gather
from adjit.ir.sizes import is_symbolic
from adjit.ir.types import I64, TensorType, as_size

from .branches import emit_if
from .conversion import convert
from .convert import to_operand
from .frames import definition, user_location
from .loops import LoopTrace, emit_for, emit_while
from .pytree import TreeDef, flatten, tree_map
from .regions import UNDEFINED, Kind, RegionOutput, Wording, conform, is_traced, kind_of
from .trace import Spec, current_trace, trace_function

CHECKPOINTS = ("none", "sqrt", "binomial")


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Any) -> Any:
    """Return `true_fn(*operands) if pred else false_fn(*operands)`.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 5)
    6
    """
    trace = current_trace()
    if trace is None or not is_traced(pred):
        return true_fn(*operands) if pred else false_fn(*operands)
    then, other = converted(true_fn), converted(false_fn)
    branches = [lambda: [then(*operands)], lambda: [other(*operands)]]
    words = Wording("`cond`", ("from true_fn", "from false_fn"), lambda name, side: definition((true_fn, false_fn)[side]))
    return emit_if(trace, pred, branches, [RegionOutput("the result of cond")], words)[0]


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return `branches[index](*operands)`; an index below 0 selects the first branch, one past the end the last.

    >>> aj.switch(1, [lambda x: x, lambda x: x * x], 3.0)
    9.0
    """
    functions = [converted(f) for f in branches]
    if not functions:
        raise TraceError("switch: needs at least one branch").at(user_location())
    if current_trace() is None or not is_traced(index):
        return functions[min(max(int(index), 0), len(functions) - 1)](*operands)
    number = as_operand(index)
    if number.type.shape or number.type.dtype.kind not in "iu":
        raise TraceError(f"switch: the index must be an integer scalar, not {number.type}").at(user_location())

    def choose(low: int, high: int) -> Any:
        # bisect, so that the nesting depth of the branches is logarithmic
        if high - low == 1:
            return functions[low](*operands)
        middle = (low + high) // 2
        return cond(ops.less(number, middle), lambda: choose(low, middle), lambda: choose(middle, high))

    return choose(0, len(functions))


def while_loop(cond_fn: Callable[[Any], Any], body_fn: Callable[[Any], Any], init: Any, *, checkpoint: str | int = "none") -> Any:
    """Return the last state of `while cond_fn(state): state = body_fn(state)`, starting from `init`.

    `checkpoint` limits the memory of reverse mode by recomputation: "none", a number of iterations between saved states, "sqrt" or
    "binomial".

    >>> while_loop(lambda state: state[0] < 3, lambda state: (state[0] + 1, state[1] * 2.0), (0, 1.0))
    (3, 8.0)
    """
    check_checkpoint(checkpoint)
    trace = current_trace()
    if trace is None:
        state = init
        while cond_fn(state):
            state = body_fn(state)
        return state
    test, body = converted(cond_fn), converted(body_fn)
    words = Wording("`while_loop`", ("before the loop", "from body_fn"), lambda name, side: definition(body_fn) if side else None)
    loop = LoopTrace([RegionOutput("the state")], [init], lambda k, values: [body(values[0])], words, False, checkpoint)
    return emit_while(trace, loop, lambda values: test(values[0]))[0]


def fori_loop(lower: Any, upper: Any, body_fn: Callable[[Any, Any], Any], init: Any, *, checkpoint: str | int = "none") -> Any:
    """Return the last state of `for i in range(lower, upper): state = body_fn(i, state)`, starting from `init`.

    `checkpoint` has the same meaning as in `while_loop`.

    >>> fori_loop(0, 4, lambda i, total: total + i, 0)
    6
    """
    check_checkpoint(checkpoint)
    trace = current_trace()
    if trace is None:
        state = init
        for i in range(int(lower), int(upper)):
            state = body_fn(i, state)
        return state
    start, stop = (bound(x, "fori_loop") for x in (lower, upper))
    certain = isinstance(start, int) and isinstance(stop, int) and start < stop
    body = converted(body_fn)
    words = Wording("`fori_loop`", ("before the loop", "from body_fn"), lambda name, side: definition(body_fn) if side else None)
    loop = LoopTrace([RegionOutput("the state")], [init], lambda k, values: [body(k, values[0])], words, certain, checkpoint)
    return emit_for(trace, loop, start, stop)[0]


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, *,
    checkpoint: str | int = "none",
) -> tuple[Any, Any]:  # fmt: skip
    """Return the last carry of `for x in xs: carry, y = f(carry, x)`, and the ys stacked along a new first axis.

    `xs` is a structure of arrays with the same first axis, or None with a `length`. With `reverse`, iteration goes from the last x to the
    first, and each y is stored at the position of its x. `checkpoint` has the same meaning as in `while_loop`.

    >>> aj.scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (Tensor(6., f64[]), Tensor([0., 2., 9.], f64[3]))
    """
    check_checkpoint(checkpoint)
    leaves, tree = flatten(xs)
    rows = [to_operand(leaf) for leaf in leaves]
    count = scan_length(rows, tree, length)
    trace = current_trace()
    if trace is None:
        return _scan_eagerly(f, init, rows, tree, count, reverse)
    trees: list[TreeDef] = []
    function = converted(f)

    def step(k: Operand | None, values: list[Any]) -> list[Any]:
        assert k is not None
        carry, buffers = values
        at = (count - 1) - k if reverse else k
        carry, y = pair(function(carry, tree.unflatten([row_at(row, at) for row in rows])))
        ys, y_tree = flatten(y)
        trees[:] = [y_tree]
        kinds = [row_kind(leaf) for leaf in ys]
        types = [stacked_type(kind, count) for kind in kinds]
        if buffers is UNDEFINED or [b.type for b in buffers] != types:
            return [carry, tuple(Literal(0, type) for type in types)]  # this trace only determines the types
        return [carry, tuple(ops.setitem(b, at, conform(leaf, kind)) for b, leaf, kind in zip(buffers, ys, kinds, strict=True))]

    words = Wording("`scan`", ("before the loop", "from f"), lambda name, side: definition(f) if side else None)
    entries = [RegionOutput("the carry"), RegionOutput("the ys", optional=True, fresh=True)]
    carry, buffers = emit_for(trace, LoopTrace(entries, [init, UNDEFINED], step, words, True, checkpoint), 0, count)
    return carry, trees[0].unflatten(buffers)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Return `np.stack([f(x) for x in xs])`; `xs` and the results may be structures of arrays.

    >>> aj.map(lambda row: row.sum(), np.array([[1.0, 2.0], [3.0, 4.0]]))
    Tensor([3., 7.], f64[2])
    """
    function = converted(f)
    return scan(lambda carry, x: (carry, function(x)), None, xs)[1]


# ---- helpers


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with its control flow converted, if a function is being traced; else the function itself."""
    if current_trace() is None:
        return function
    return convert(function)


def check_checkpoint(checkpoint: str | int) -> None:
    if checkpoint not in CHECKPOINTS and (not isinstance(checkpoint, int) or isinstance(checkpoint, bool) or checkpoint < 1):
        raise ValueError(f"checkpoint is 'none', 'sqrt', 'binomial' or a positive number of iterations, not {checkpoint!r}")


def bound(x: Any, what: str) -> Operand | int:
    """Return a bound of a range as a Python integer or a traced integer scalar."""
    if not isinstance(x, Operand) or not is_traced(x):
        return x if is_symbolic(x) else int(x)
    operand = as_operand(x)
    if operand.type.size != 1 or operand.type.dtype.kind not in "iub":
        raise TraceError(f"{what}: a bound must be an integer, not {operand.type}").at(user_location())
    return ops.cast(ops.reshape(operand, ()), I64)


def scan_length(rows: Sequence[Operand], tree: TreeDef, length: int | None) -> int:
    sizes = {}
    for row, path in zip(rows, tree.paths(), strict=True):
        if not row.type.shape:
            raise ShapeError(f"scan: xs{path} is {row.type}: a scalar has no rows").at(user_location())
        sizes[path] = row.type.shape[0]
    if length is None and not sizes:
        raise ShapeError("scan: neither xs nor a length is given").at(user_location())
    count = next(iter(sizes.values())) if length is None else as_size(length)
    for path, size in sizes.items():
        if size != count:
            raise ShapeError(f"scan: xs{path} has {size} rows, not {count}").at(user_location())
    return count


def row_at(x: Operand, k: Any) -> Operand:
    """Return `x[k]` for an iteration number k."""
    return ops.getitem(x, k) if isinstance(k, int) else apply(Gather(), x, k)


def pair(out: Any) -> tuple[Any, Any]:
    if not isinstance(out, tuple) or len(out) != 2:
        raise TraceError(f"scan: f must return a pair (carry, y), not {type(out).__name__}").at(user_location())
    return out


def row_kind(leaf: Any) -> Kind:
    kind = kind_of(leaf)
    if kind is None:
        raise TraceError(f"scan: a y must be made of numbers and arrays, not {type(leaf).__name__}").at(user_location())
    return Kind(kind.type, False)


def stacked_type(kind: Kind, count: int) -> TensorType:
    return kind.type.with_shape((count, *kind.type.shape))


def _scan_eagerly(
    f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, rows: Sequence[Operand], tree: TreeDef, count: int, reverse: bool
) -> tuple[Any, Any]:
    ys: list[Any] = [None] * count
    for k in reversed(range(count)) if reverse else range(count):
        carry, ys[k] = pair(f(carry, tree.unflatten([ops.getitem(row, k) for row in rows])))
    if not ys:
        return carry, _no_rows(f, carry, rows, tree)
    return carry, tree_map(lambda *column: stack(column), *ys)


def _no_rows(f: Callable[[Any, Any], tuple[Any, Any]], carry: Any, rows: Sequence[Operand], tree: TreeDef) -> Any:
    """Return the ys of a scan over zero rows: `f` is traced, but not run, to determine their types."""
    kinds = [kind_of(leaf) for leaf in flatten(carry)[0]]
    leaves, arguments = flatten(((carry, tree.unflatten(rows)), {}))
    types = [*kinds, *(Kind(row.type.with_shape(row.type.shape[1:]), False) for row in rows)]
    specs = [leaf if kind is None else Spec(kind.type, kind.weak) for leaf, kind in zip(leaves, types, strict=True)]
    function = convert(f)

    def y(carry: Any, row: Any) -> Any:
        return pair(function(carry, row))[1]

    program = trace_function(y, arguments, specs, getattr(f, "__name__", None))
    empty = (np.zeros((0, *r.type.shape), r.type.dtype) for r in program.func.results)
    return program.rebuild([to_operand(array) for array in empty])


def stack(column: Sequence[Any]) -> Operand:
    operands = [to_operand(x) for x in column]
    return ops.concatenate([ops.reshape(x, (1, *x.type.shape)) for x in operands], 0)


__all__ = ["cond", "fori_loop", "map", "scan", "switch", "while_loop"]
