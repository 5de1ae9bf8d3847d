"""Rows for `test_semantics`: each is a function without arguments that uses tapes and functions, and its result as plain data."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import adjit as aj


class Case(NamedTuple):
    name: str
    fn: Callable[[], Any]
    gives: Any


CASES: list[Case] = []


def case(gives: Any) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def register(fn: Callable[[], Any]) -> Callable[[], Any]:
        CASES.append(Case(fn.__name__, fn, gives))
        return fn

    return register


def row(name: str, fn: Callable[[], Any], gives: Any) -> None:
    CASES.append(Case(name, fn, gives))


def raised(fn: Callable[[], Any]) -> str:
    """The type of the error that `fn` raises."""
    try:
        fn()
    except Exception as error:
        return type(error).__name__
    return "nothing"


def tensor(x: Any) -> Any:
    return aj.tensor(x, "f8")


def taped(fn: Callable[..., Any], *values: Any) -> tuple[Any, Any, list[Any]]:
    """A persistent tape, the result of `fn` on watched tensors, and these tensors."""
    xs = [tensor(v) for v in values]
    with aj.GradientTape(persistent=True) as tape:
        tape.watch(xs)
        y = fn(*xs)
    return tape, y, xs


def gradients(fn: Callable[..., Any], *values: Any) -> Any:
    tape, y, xs = taped(fn, *values)
    out = tape.gradient(y, xs)
    return out[0] if len(out) == 1 else out


W = aj.Variable([1.0, 2.0], name="w")
V = aj.Variable(3.0, name="v")
GRID = np.array([[1.0, 2.0], [3.0, 4.0]])
COUNT = aj.Variable(0.0, trainable=False, name="count")


@dataclass
class Pair:
    a: Any
    b: Any


class Point(NamedTuple):
    x: Any
    y: Any


# ---- jacobians


@case([[2.0, 0.0], [0.0, 4.0]])
def jacobian_of_a_square() -> Any:
    tape, y, (x,) = taped(lambda x: x * x, [1.0, 2.0])
    return tape.jacobian(y, x)


@case([3.0, 3.0])
def jacobian_of_a_scalar_is_the_gradient() -> Any:
    tape, y, (x,) = taped(lambda x: 3.0 * x.sum(), [1.0, 2.0])
    return tape.jacobian(y, x)


@case([2.0, 4.0])
def jacobian_by_a_scalar() -> Any:
    tape, y, (x,) = taped(lambda x: x * np.array([2.0, 4.0]), 1.0)
    return tape.jacobian(y, x)


@case({"x": [[1.0, 0.0], [0.0, 1.0]], "v": None})
def jacobian_has_the_sources_structure() -> Any:
    tape, y, (x,) = taped(lambda x: x + 1.0, [1.0, 2.0])
    return tape.jacobian(y, {"x": x, "v": V})


@case([0.0, 0.0])
def jacobian_zeros_for_unconnected() -> Any:
    tape, y, _ = taped(lambda x: x + 1.0, [1.0, 2.0])
    return tape.jacobian(y, V, unconnected_gradients="zero")


@case([[1.0, 0.0], [0.0, 1.0]])
def jacobian_by_a_variable() -> Any:
    with aj.GradientTape() as tape:
        y = W * 1.0
    return tape.jacobian(y, W)


@case("RuntimeError")
def jacobian_spends_the_tape() -> Any:
    with aj.GradientTape() as tape:
        y = V * V
    tape.jacobian(y, V)
    return raised(lambda: tape.gradient(y, V))


@case([[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]])
def batch_jacobian_of_rows() -> Any:
    tape, y, (x,) = taped(lambda x: x * x, [[1.0, 2.0], [3.0, 4.0]])
    return tape.batch_jacobian(y, x)


@case("ValueError")
def batch_jacobian_of_other_rows() -> Any:
    tape, y, (x,) = taped(lambda x: x[:1], [[1.0, 2.0], [3.0, 4.0]])
    return raised(lambda: tape.batch_jacobian(y, x))


@case([[6.0, 0.0], [0.0, 12.0]])
def hessian_by_two_tapes() -> Any:
    x = tensor([1.0, 2.0])
    with aj.GradientTape() as outer:
        outer.watch(x)
        with aj.GradientTape() as inner:
            inner.watch(x)
            y = (x**3).sum()
        first = inner.gradient(y, x)
    return outer.jacobian(first, x)


# ---- structures


@case([2.0, 1.0])
def dataclass_of_sources() -> Any:
    tape, y, (a, b) = taped(lambda a, b: a * b, 1.0, 2.0)
    out = tape.gradient(y, Pair(a, b))
    assert isinstance(out, Pair)
    return [out.a, out.b]


@case([2.0, 1.0])
def named_tuple_of_sources() -> Any:
    tape, y, (a, b) = taped(lambda a, b: a * b, 1.0, 2.0)
    out = tape.gradient(y, Point(a, b))
    assert isinstance(out, Point)
    return list(out)


@case({"p": [2.0], "q": [1.0, None]})
def nested_sources() -> Any:
    tape, y, (a, b) = taped(lambda a, b: a * b, 1.0, 2.0)
    return tape.gradient(y, {"p": [a], "q": [b, V]})


@case([None, 2.0])
def none_among_sources_stays() -> Any:
    tape, y, (a, _) = taped(lambda a, b: a * b, 1.0, 2.0)
    return tape.gradient(y, [None, a])


@case([])
def no_sources() -> Any:
    tape, y, _ = taped(lambda a: a * 2.0, 1.0)
    return tape.gradient(y, [])


@case(5.0)
def dict_of_targets() -> Any:
    tape, y, (x,) = taped(lambda x: {"a": 2.0 * x, "b": [3.0 * x]}, 1.0)
    return tape.gradient(y, x)


@case([4.0, 6.0])
def watched_structure() -> Any:
    p = {"a": tensor(2.0), "b": Pair(tensor(3.0), None)}
    with aj.GradientTape() as tape:
        tape.watch(p)
        y = p["a"] ** 2 + p["b"].a ** 2
    return tape.gradient(y, [p["a"], p["b"].a])


# ---- what gradients pass through

row("through_reshape_and_transpose", lambda: gradients(lambda x: (x.reshape(2, 2).T * GRID).sum(), [1.0] * 4), [1.0, 3.0, 2.0, 4.0])
row("through_slices", lambda: gradients(lambda x: x[1:].sum() + x[::-2].sum(), [1.0, 1.0, 1.0]), [1.0, 1.0, 2.0])
row("through_updates", lambda: gradients(lambda x, y: x.at[0].set(y).sum(), [1.0, 2.0], 5.0), [[0.0, 1.0], 1.0])
row("through_concatenation", lambda: gradients(lambda x, y: np.concatenate([x, y])[1:].sum(), [1.0, 1.0], [1.0]), [[0.0, 1.0], [1.0]])
row("through_max_with_a_tie", lambda: gradients(lambda x: x.max(), [2.0, 2.0]), [0.5, 0.5])
row("through_sorting_by_where", lambda: gradients(lambda x, y: np.where(x < y, x, y), 1.0, 2.0), [1.0, 0.0])
row("through_matmul", lambda: gradients(lambda a, b: (a @ b).sum(), [[1.0, 2.0]], [[3.0], [4.0]]), [[[3.0, 4.0]], [[1.0], [2.0]]])
row("through_einsum", lambda: gradients(lambda a, b: aj.einsum("i,i->", a, b), [1.0, 2.0], [3.0, 4.0]), [[3.0, 4.0], [1.0, 2.0]])
row("through_float32", lambda: gradients(lambda x: (x.astype("f4") * 2.0).astype("f8"), 1.0), 2.0)
row("through_a_compiled_function", lambda: gradients(aj.function(lambda x: x * x * x), 2.0), 12.0)
row("through_cond", lambda: gradients(lambda x: aj.cond(x > 1.0, lambda: x * x, lambda: x), 3.0), 6.0)
row("through_the_other_branch", lambda: gradients(lambda x: aj.cond(x > 1.0, lambda: x * x, lambda: x), 0.5), 1.0)
row("through_fori_loop", lambda: gradients(lambda x: aj.fori_loop(0, 3, lambda k, c: c * x, x), 2.0), 32.0)
row("through_while_loop", lambda: gradients(lambda x: aj.while_loop(lambda c: c < 10.0, lambda c: c * x, x), 2.0), 32.0)
row("through_scan", lambda: gradients(lambda x: aj.scan(lambda c, t: (c * x, c * t), x, np.ones(2))[1].sum(), 3.0), 7.0)
row("through_vmap", lambda: gradients(lambda x: aj.vmap(lambda y: y * y)(x).sum(), [1.0, 2.0]), [2.0, 4.0])
row("through_grad", lambda: gradients(aj.grad(lambda x: x * x * x), 2.0), 12.0)
row("through_checkpoint", lambda: gradients(aj.checkpoint(lambda x: np.sin(x) * x), 0.0), 0.0)
row("through_custom_gradient", lambda: gradients(aj.custom_gradient(lambda x: (x * 1.0, lambda d: d * 7.0)), 2.0), 7.0)
row("not_through_floor", lambda: gradients(np.floor, 1.5), None)
row("not_through_comparison", lambda: gradients(lambda x: np.where(x > 1.0, 2.0, 3.0), 1.5), None)
row("not_through_argmax", lambda: gradients(lambda x: x.argmax() * 1.0, [1.0, 2.0]), None)
row("not_through_integers", lambda: gradients(lambda x: x.astype(int) * 1.0, 1.5), None)
row("not_through_indices", lambda: gradients(lambda x: aj.tensor([1.0, 2.0])[x.astype(int)], 1.0), None)
row("past_a_zero_of_a_product", lambda: gradients(lambda x: x.prod(), [0.0, 2.0, 3.0]), [6.0, 0.0, 0.0])
row("masked_infinity", lambda: gradients(lambda x: np.where(x > 0.0, np.log(x), 0.0).sum(), [0.0, 2.0]), [0.0, 0.5])


@case([12.0, 12.0, 6.0, 0.0])
def four_orders_by_nested_tapes() -> Any:
    x = tensor(2.0)
    with aj.GradientTape() as t4:
        t4.watch(x)
        with aj.GradientTape() as t3:
            t3.watch(x)
            with aj.GradientTape() as t2:
                t2.watch(x)
                with aj.GradientTape() as t1:
                    t1.watch(x)
                    y = x * x * x
                first = t1.gradient(y, x)
            second = t2.gradient(first, x)
        third = t3.gradient(second, x)
    return [first, second, third, t4.gradient(third, x, unconnected_gradients="zero")]


@case([6.0, None])
def two_tapes_each_with_its_own_eyes() -> Any:
    x = tensor(3.0)
    with aj.GradientTape() as one, aj.GradientTape() as two:
        one.watch(x)
        y = x * x
    return [one.gradient(y, x), two.gradient(y, x)]


@case(2.0)
def a_tape_in_a_helper() -> Any:
    def slope(f: Any, x: Any) -> Any:
        with aj.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        return tape.gradient(y, x)

    return slope(lambda x: 2.0 * x, tensor(5.0))


@case("GradientError")
def seed_of_the_wrong_shape() -> Any:
    tape, y, (x,) = taped(lambda x: x * x, [1.0, 2.0])
    return raised(lambda: tape.gradient(y, x, output_gradients=np.ones(3)))


@case("ValueError")
def unknown_word_for_unconnected() -> Any:
    tape, y, (x,) = taped(lambda x: x * x, 1.0)
    return raised(lambda: tape.gradient(y, x, unconnected_gradients="maybe"))


@case([1.0, 2.0])
def gradient_of_the_sum_of_targets_of_other_shapes() -> Any:
    tape, (a, b), (x,) = taped(lambda x: (x[0], x[1] * 2.0), [1.0, 1.0])
    return tape.gradient([a, b], x)


@case([[3.0, 6.0], [1.0, 2.0]])
def output_gradients_as_numbers_and_arrays() -> Any:
    tape, y, (x,) = taped(lambda x: x * np.array([1.0, 2.0]), [1.0, 1.0])
    return [tape.gradient(y, x, output_gradients=3.0), tape.gradient(y, x, output_gradients=np.ones(2))]


@case([[3.0, 1.0], None])
def explained() -> Any:
    tape, y, (a, b) = taped(lambda a, b: a * b, 1.0, 3.0)
    assert tape.explain(y, a).startswith("connected")
    assert "not read" in tape.explain(y, V)
    return [tape.gradient(y, [a, b]), tape.gradient(y, V)]


# ---- state


@case([4.0, 8.0, 3.0])
def assignments_are_seen_at_once() -> Any:
    V.assign(4.0)
    first = V * 1.0
    V.assign_add(4.0)
    second = V * 1.0
    V.assign(3.0)
    return [first, second, V * 1.0]


@case([[2.0, 3.0], [1.0, 2.0]])
def what_was_read_does_not_change() -> Any:
    before = W.value()
    W.assign_add([1.0, 1.0])
    after = W.value()
    W.assign(before)
    return [after, before]


@case([3.0, 5.0])
def variables_exchange_values() -> Any:
    COUNT.assign(5.0)
    a, b = V.value(), COUNT.value()
    V.assign(b)
    COUNT.assign(a)
    out = [COUNT * 1.0, V * 1.0]
    V.assign(3.0)
    COUNT.assign(0.0)
    return out


@case([9.0, 0.0])
def assign_returns_the_variable() -> Any:
    out = [COUNT.assign(4.0).assign_add(5.0) * 1.0]
    COUNT.assign(0.0)
    return [*out, COUNT * 1.0]


@case(["ShapeError", "DTypeError", 3.0])
def a_bad_assignment_leaves_the_variable_alone() -> Any:
    return [raised(lambda: V.assign([1.0, 2.0])), raised(lambda: V.assign(tensor(1.0).astype("f4"))), V * 1.0]


@case(6.0)
def an_update_after_its_gradient() -> Any:
    with aj.GradientTape() as tape:
        y = V * V
    slope = tape.gradient(y, V)
    V.assign_sub(slope)
    V.assign_add(slope)
    return slope


@case(None)
def state_is_no_way_for_gradients() -> Any:
    def f(x: Any) -> Any:
        COUNT.assign(x * 2.0)
        return COUNT * COUNT

    out = gradients(f, 3.0)
    COUNT.assign(0.0)
    return out


# ---- functions


def doubled(x: Any, times: int) -> Any:
    return x if times == 0 else doubled(x * 2.0, times - 1)


@aj.function(input_signature=[aj.TensorSpec([None], "f32")])
def signed(x: Any) -> Any:
    return x * 2


row("function_of_nothing", lambda: aj.function(lambda: 3.0)(), 3.0)
row("function_with_defaults", lambda: aj.function(lambda x, y=2.0: x * y)(3.0), 6.0)
row("function_with_keywords", lambda: aj.function(lambda x, *, k: x * k)(3.0, k=4.0), 12.0)
row("function_with_varargs", lambda: aj.function(lambda *xs, **ks: sum(xs) + ks["a"])(1.0, 2.0, a=3.0), 6.0)
row("function_giving_none", lambda: aj.function(lambda x: None)(1.0), None)
row("function_giving_text", lambda: aj.function(lambda x: {"x": x, "s": "text"})(1.0), {"x": 1.0, "s": "text"})
row("function_giving_its_argument_twice", lambda: list(aj.function(lambda x: (x, x))(2.0)), [2.0, 2.0])
row("function_in_a_function", lambda: aj.function(lambda x: aj.function(lambda y: y * y)(x) + 1.0)(3.0), 10.0)
row("function_of_a_partial", lambda: aj.function(functools.partial(lambda a, b: a - b, 5.0))(3.0), 2.0)
row("partial_of_a_function", lambda: functools.partial(aj.function(lambda a, b: a - b), 5.0)(3.0), 2.0)
row("function_branching_on_a_bool", lambda: [aj.function(lambda x, flag: x if flag else -x)(2.0, f) for f in (True, False)], [2.0, -2.0])
row("function_branching_on_a_shape", lambda: aj.function(lambda x: x.sum() if x.ndim else x)(np.ones(3)), 3.0)
row("function_recursing", lambda: aj.function(lambda x: doubled(x, 3))(1.0), 8.0)
row("function_with_a_comprehension", lambda: aj.function(lambda x: sum(x[i] * i for i in range(3)))(np.ones(3)), 3.0)
row("function_of_a_variable", lambda: aj.function(lambda v: v * 2.0)(V), 6.0)
row("function_of_the_same_variable_twice", lambda: aj.function(lambda a, b: a * b)(V, V), 9.0)
row("function_keeps_float32", lambda: str(aj.function(lambda x: x * 2.0 + 1)(np.ones(2, "f4")).dtype), "float32")
row("function_promotes_as_numpy", lambda: str(aj.function(lambda x, y: x + y)(np.ones(2, "f4"), np.ones(2)).dtype), "float64")
row("function_with_integers", lambda: aj.function(lambda n: n // 2)(np.array([5, -5])), [2, -3])
row("function_that_raises", lambda: raised(lambda: aj.function(lambda x: {}["missing"])(1.0)), "KeyError")
row("function_with_bad_shapes", lambda: raised(lambda: aj.function(lambda x: x @ np.ones(3))(np.ones(2))), "ShapeError")
row("function_called_wrongly", lambda: raised(lambda: aj.function(lambda x: x)()), "TypeError")
row("signature_checked", lambda: raised(lambda: signed(np.ones((3, 1), "f4"))), "ShapeError")
row("signature_converts_numbers", lambda: signed([1, 2]), [2.0, 4.0])
row("out_of_bounds", lambda: raised(lambda: aj.tensor([1.0, 2.0])[5]), "OutOfBoundsError")

# ---- transforms

row("grad_of_a_closure", lambda: (lambda c: aj.grad(lambda x: c * x)(2.0))(tensor(3.0)), 3.0)
row("value_and_grad", lambda: list(aj.value_and_grad(lambda x: x * x)(3.0)), [9.0, 6.0])
row("vjp", lambda: list(aj.vjp(lambda x, y: x * y, 2.0, 3.0)[1](1.0)), [3.0, 2.0])
row("jvp", lambda: list(aj.jvp(lambda x: x * x, (3.0,), (2.0,))), [9.0, 12.0])
row("hessian", lambda: aj.hessian(lambda x: (x**3).sum())(np.array([1.0, 2.0])), [[6.0, 0.0], [0.0, 12.0]])
row("hvp", lambda: aj.hvp(lambda x: (x**3).sum(), np.array([1.0, 2.0]), np.ones(2)), [6.0, 12.0])
row("linearize", lambda: aj.linearize(lambda x: x * x, 3.0)[1](2.0), 12.0)
row("vmap_of_grad", lambda: aj.vmap(aj.grad(lambda x: x * x))(np.arange(3.0)), [0.0, 2.0, 4.0])
row("grad_of_an_integer", lambda: raised(lambda: aj.grad(lambda x: x * x)(3)), "GradientError")
row("grad_of_a_vector", lambda: raised(lambda: aj.grad(lambda x: x * x)(np.ones(2))), "GradientError")
row("stop_gradient_in_grad", lambda: aj.grad(lambda x: x * aj.stop_gradient(x))(3.0), 3.0)
