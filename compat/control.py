"""Control flow as functions, with TensorFlow's arguments: branches (`cond`, `case`, `switch_case`), `while_loop`, `map_fn`, `scan`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from adjit.ir import ops
from adjit.ir.errors import VaryingSizeError
from adjit.ir.operand import Operand
from adjit.runtime.conversion import as_called
from adjit.tracer import control
from adjit.tracer.frames import user_location
from adjit.tracer.pytree import flatten, tree_map
from adjit.tracer.surface import shapes

from .dtypes import int32
from .errors import translated
from .shape import TensorShape
from .specs import TensorSpec
from .tensor import convert_to_tensor, dress, dress_structure, tracing
from .tensor_array import TensorArray


def cond(pred: Any, true_fn: Callable[[], Any] | None = None, false_fn: Callable[[], Any] | None = None, name: str | None = None) -> Any:
    """`true_fn() if pred else false_fn()`, decided at run time if `pred` is traced."""
    if not callable(true_fn) or not callable(false_fn):
        raise TypeError("true_fn and false_fn must be callable.")
    test = pred if isinstance(pred, bool) else convert_to_tensor(pred)
    return dress_structure(control.cond(test, _tensors(true_fn), _tensors(false_fn)))


def case(
    pred_fn_pairs: Any, default: Callable[[], Any] | None = None, exclusive: bool = False, strict: bool = False, name: str = "case"
) -> Any:
    """The function of the first predicate that holds, else `default`."""
    pairs = list(pred_fn_pairs.items() if isinstance(pred_fn_pairs, dict) else pred_fn_pairs)
    if exclusive and pairs:
        number = functools.reduce(ops.add, [ops.cast(convert_to_tensor(pred), int32.dtype) for pred, _ in pairs])
        ops.check(number <= 1, "Input error: exclusive=True: more than 1 conditions of tf.case evaluated as True")
    last = default if default is not None else pairs.pop()[1]

    def chain(rest: Sequence[tuple[Any, Callable[[], Any]]]) -> Any:
        if not rest:
            return last()
        (pred, fn), *others = rest
        return cond(pred, fn, lambda: chain(others))

    return chain(pairs)


def switch_case(branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case") -> Any:
    """Call `branch_fns[branch_index]()`; an index out of range selects `default` (or the last)."""
    if not isinstance(branch_index, Operand):
        raise TypeError(f"'branch_index' must be a Tensor, got {type(branch_index)}")
    numbered = _numbered(branch_fns)
    last = default or numbered[max(numbered)]
    functions = [_tensors(numbered[i]) for i in range(len(numbered))] + [_tensors(last)]
    index = convert_to_tensor(branch_index)
    if not tracing():
        at = int(index)
        return dress_structure(functions[at if 0 <= at < len(functions) else -1]())
    outside = (index < 0) | (index >= len(functions))
    return dress_structure(control.switch(ops.where(outside, len(functions) - 1, index), functions))


def _numbered(branch_fns: Any) -> dict[int, Callable[[], Any]]:
    """The functions of `switch_case` by their indices: they are given in order, or as pairs, or as a dict."""
    pairs = list(branch_fns.items() if isinstance(branch_fns, dict) else branch_fns)
    if not pairs:
        raise ValueError("branch_fns must be a non-empty list or dict of functions")
    if callable(pairs[0]):
        pairs = list(enumerate(pairs))
    for key, function in pairs:
        if not isinstance(key, int):
            raise TypeError(f"key must be a Python `int`, got {type(key)}")
        if not callable(function):
            raise TypeError(f"fn for key {key} must be callable.")
    found = sorted(key for key, _ in pairs)
    if found != list(range(len(pairs))):
        raise ValueError(f"branch indices must form contiguous range of [0 to {len(pairs)}) but found {{{', '.join(map(str, found))}}}")
    return dict(pairs)


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, shape_invariants: Any = None, parallel_iterations: int = 10,
    back_prop: bool = True, swap_memory: bool = False, maximum_iterations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """`while cond(*vars): vars = body(*vars)`; returns the last variables. Gradients flow through it, whatever the trip count."""
    kind = type(loop_vars) if isinstance(loop_vars, list | tuple) else tuple
    start = tuple(map(_carried, loop_vars if isinstance(loop_vars, list | tuple) else (loop_vars,)))

    shapes = declared_shapes(start, shape_invariants)

    def step(state: Any) -> Any:
        count, values = state
        out = as_called(body)(*dress_structure(values))
        out = tuple(out) if isinstance(out, list | tuple) and (len(start) > 1 or len(out) == 1) else (out,)
        if len(out) != len(start):
            raise ValueError(
                f"The two structures don't have the same nested structure: the body of while_loop gave {len(out)} values for {len(start)} "
                "loop variables"
            )
        out = tuple(map(_following, values, out))
        if tracing():
            check_shapes(values, out, shapes)
        return count + 1, out

    def test(state: Any) -> Any:
        count, values = state
        goes_on = convert_to_tensor(as_called(cond)(*dress_structure(values)))
        return goes_on if maximum_iterations is None else goes_on & (count < convert_to_tensor(maximum_iterations, int32))

    _, out = control.while_loop(test, step, (convert_to_tensor(0), start))
    return dress_structure(kind(out) if kind in (list, tuple) else out)


def declared_shapes(start: tuple[Any, ...], invariants: Any) -> list[TensorShape | None]:
    """For each leaf of the loop variables, the shape that `shape_invariants` declares."""
    leaves = [leaf for value in start for leaf in parts_of(value)]
    if invariants is None:
        return [None] * len(leaves)
    given = flatten(tuple(invariants) if isinstance(invariants, list | tuple) else (invariants,), is_leaf=is_shape)[0]
    wrong = next((x for x in given if not is_shape(x)), None)
    if wrong is not None:
        raise TypeError(f"while_loop: shape_invariants takes TensorShapes and TensorSpecs, not {wrong!r}")
    if len(given) != len(leaves):
        raise ValueError(f"while_loop: there are {len(given)} shape_invariants for {len(leaves)} loop variables")
    shapes = [x.shape if isinstance(x, TensorSpec) else x for x in given]
    for leaf, shape in zip(leaves, shapes, strict=True):
        if shape is not None and isinstance(leaf, Operand) and not shape.is_compatible_with(leaf.type.shape):
            raise ValueError(
                "The shape invariant specified for a loop variable is not compatible with its initial shape. It enters the loop with shape "
                f"{TensorShape(leaf.type.shape)}, but the specified shape invariant is {shape}."
            )
    return shapes


def is_shape(x: Any) -> bool:
    return x is None or isinstance(x, TensorShape | TensorSpec)


def parts_of(value: Any) -> list[Any]:
    return [value] if isinstance(value, TensorArray) else flatten(value)[0]


def check_shapes(before: tuple[Any, ...], after: tuple[Any, ...], shapes: Sequence[TensorShape | None]) -> None:
    """Check that an iteration keeps shapes, or changes those that may vary, which no compiled loop can."""
    pairs = [pair for old, new in zip(before, after, strict=True) for pair in zip(parts_of(old), parts_of(new), strict=False)]
    for (old, new), shape in zip(pairs, shapes, strict=False):
        if not (isinstance(old, Operand) and isinstance(new, Operand)) or old.type.shape == new.type.shape:
            continue
        there, here = TensorShape(old.type.shape), TensorShape(new.type.shape)
        if shape is None:
            raise ValueError(
                f"Input tensor enters the loop with shape {there}, but has shape {here} after one iteration. To allow the shape to vary "
                "across iterations, use the `shape_invariants` argument of tf.while_loop to specify a less-specific shape."
            )
        if not shape.is_compatible_with(here):
            raise ValueError(f"The shape invariant specified for a loop variable is {shape}, but it has shape {here} after one iteration.")
        raise VaryingSizeError(f"while_loop: a loop variable has shape {there} before an iteration and {here} after it").at(user_location())


def _carried(x: Any) -> Any:
    """The initial values of a loop, as tensors; the type of an array without written elements is determined in the loop."""
    return x if isinstance(x, TensorArray) else tree_map(convert_to_tensor, x)


def _following(before: Any, after: Any) -> Any:
    return after if isinstance(after, TensorArray) else tree_map(_alike, before, after)


def _alike(before: Any, after: Any) -> Any:
    return convert_to_tensor(after, dtype_hint=before.dtype)


def map_fn(
    fn: Callable[[Any], Any], elems: Any, dtype: Any = None, parallel_iterations: Any = None, back_prop: bool = True,
    swap_memory: bool = False, infer_shape: bool = True, name: str | None = None, fn_output_signature: Any = None,
) -> Any:  # fmt: skip
    """Apply `fn` to each row, and stack the results."""
    rows = _rows(elems)
    wanted = fn_output_signature if fn_output_signature is not None else dtype

    def each(row: Any) -> Any:
        out = as_called(fn)(dress_structure(row))
        if isinstance(wanted, list | tuple | dict):
            _check_structure(wanted, out)
        return tree_map(convert_to_tensor, out)

    return dress_structure(control.map(each, rows))


def _rows(elems: Any) -> Any:
    rows = tree_map(convert_to_tensor, elems)
    leaves = flatten(rows)[0]
    if not leaves:
        raise ValueError(
            f"elems must be a Tensor or (possibly nested) sequence of Tensors. Got {elems}, which does not contain any Tensors."
        )
    if not all(leaf.ndim for leaf in leaves):
        raise ValueError("Elements in elems must be 1+ dimensional Tensors, not scalars")
    return rows


def _check_structure(wanted: Any, out: Any) -> None:
    if flatten(wanted)[1] != flatten(out)[1]:
        raise TypeError(
            "The two structures don't have the same nested structure.\n\n"
            f"First structure: type={type(wanted).__name__} str={wanted}\n\nSecond structure: type={type(out).__name__} str={out}"
        )


def vectorized_map(fn: Callable[[Any], Any], elems: Any, fallback_to_while_loop: bool = True, warn: bool = True) -> Any:
    """Apply `fn` to each row, and stack the results."""
    return map_fn(fn, elems)


@translated
def scan(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, infer_shape: bool = True, reverse: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """All accumulated values of `a = fn(a, x)` over the rows x."""
    rows = tree_map(convert_to_tensor, elems)
    first: Any = None
    if initializer is None:
        at, rest = (-1, slice(None, -1)) if reverse else (0, slice(1, None))
        first, rows = tree_map(lambda r: r[at], rows), tree_map(lambda r: r[rest], rows)
    start = tree_map(convert_to_tensor, first if initializer is None else initializer)

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        out = tree_map(_alike, carry, as_called(fn)(dress_structure(carry), dress_structure(row)))
        return out, out

    _, ys = control.scan(step, start, rows, reverse=reverse)
    if first is not None:
        ys = tree_map(lambda f, y: shapes.concatenate((y, f[None]) if reverse else (f[None], y)), start, ys)
    return dress_structure(ys)


def foldl(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    """The last accumulated value of `scan`."""
    return tree_map(lambda ys: dress(ys[-1]), scan(fn, elems, initializer))


def foldr(
    fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, parallel_iterations: int = 10, back_prop: bool = True,
    swap_memory: bool = False, name: str | None = None,
) -> Any:  # fmt: skip
    return tree_map(lambda ys: dress(ys[0]), scan(fn, elems, initializer, reverse=True))


def _tensors(fn: Callable[[], Any]) -> Callable[[], Any]:
    """The function, with numbers in its result converted to tensors, so that branches returning 0.0 and a float32 tensor agree."""

    @functools.wraps(fn)
    def branch() -> Any:
        out = as_called(fn)()
        leaves, tree = flatten(out)
        return tree.unflatten([x if not isinstance(x, bool | int | float | Operand) else convert_to_tensor(x) for x in leaves])

    return branch
