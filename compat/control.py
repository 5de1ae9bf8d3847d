"""Control flow as functions, with TensorFlow's arguments: branches (`cond`, `case`, `switch_case`), `while_loop`, `map_fn`, `scan`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from adjit.ir import ops
from adjit.ir.operand import Operand
from adjit.runtime.conversion import as_called
from adjit.tracer import control
from adjit.tracer.pytree import flatten, tree_map
from adjit.tracer.surface import shapes

from .dtypes import int32
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
    last = default if default is not None else pairs.pop()[1]

    def chain(rest: Sequence[tuple[Any, Callable[[], Any]]]) -> Any:
        if not rest:
            return last()
        (pred, fn), *others = rest
        return cond(pred, fn, lambda: chain(others))

    return chain(pairs)


def switch_case(branch_index: Any, branch_fns: Any, default: Callable[[], Any] | None = None, name: str = "switch_case") -> Any:
    """Call `branch_fns[branch_index]()`; an index out of range selects `default` (or the last)."""
    if isinstance(branch_fns, dict):
        numbered: dict[int, Any] = dict(branch_fns)
    else:
        numbered = dict(enumerate(branch_fns) if callable(branch_fns[0]) else branch_fns)
    last = default or numbered[max(numbered)]
    functions = [_tensors(numbered.get(i, last)) for i in range(max(numbered) + 1)] + [_tensors(last)]
    index = convert_to_tensor(branch_index)
    if not tracing():
        at = int(index)
        return dress_structure(functions[at if 0 <= at < len(functions) else -1]())
    outside = (index < 0) | (index >= len(functions))
    return dress_structure(control.switch(ops.where(outside, len(functions) - 1, index), functions))


def while_loop(
    cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Any, shape_invariants: Any = None, parallel_iterations: int = 10,
    back_prop: bool = True, swap_memory: bool = False, maximum_iterations: Any = None, name: str | None = None,
) -> Any:  # fmt: skip
    """`while cond(*vars): vars = body(*vars)`; returns the last variables. Gradients flow through it, whatever the trip count."""
    kind = type(loop_vars) if isinstance(loop_vars, list | tuple) else tuple
    start = tuple(map(_carried, loop_vars if isinstance(loop_vars, list | tuple) else (loop_vars,)))

    def step(state: Any) -> Any:
        count, values = state
        out = as_called(body)(*dress_structure(values))
        out = tuple(out) if isinstance(out, list | tuple) and (len(start) > 1 or len(out) == 1) else (out,)
        if len(out) != len(start):
            raise ValueError(f"while_loop: the body gave {len(out)} values for {len(start)} loop variables")
        return count + 1, tuple(map(_following, values, out))

    def test(state: Any) -> Any:
        count, values = state
        goes_on = convert_to_tensor(as_called(cond)(*dress_structure(values)))
        return goes_on if maximum_iterations is None else goes_on & (count < convert_to_tensor(maximum_iterations, int32))

    _, out = control.while_loop(test, step, (convert_to_tensor(0), start))
    return dress_structure(kind(out) if kind in (list, tuple) else out)


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
    rows = tree_map(convert_to_tensor, elems)
    return dress_structure(control.map(lambda row: tree_map(convert_to_tensor, as_called(fn)(dress_structure(row))), rows))


vectorized_map = map_fn


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


def foldl(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, **ignored: Any) -> Any:
    """The last accumulated value of `scan`."""
    return tree_map(lambda ys: dress(ys[-1]), scan(fn, elems, initializer))


def foldr(fn: Callable[[Any, Any], Any], elems: Any, initializer: Any = None, **ignored: Any) -> Any:
    return tree_map(lambda ys: dress(ys[0]), scan(fn, elems, initializer, reverse=True))


def _tensors(fn: Callable[[], Any]) -> Callable[[], Any]:
    """The function, with numbers in its result converted to tensors, so that branches returning 0.0 and a float32 tensor agree."""

    @functools.wraps(fn)
    def branch() -> Any:
        out = as_called(fn)()
        leaves, tree = flatten(out)
        return tree.unflatten([x if not isinstance(x, bool | int | float | Operand) else convert_to_tensor(x) for x in leaves])

    return branch
