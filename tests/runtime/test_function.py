"""function: its cache, static values, structures, methods and threads; errors leave no state behind."""

from __future__ import annotations

import copy
import functools
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import adjit as aj
from adjit.ir.active import current_builder
from adjit.ir.errors import DTypeError, ShapeError, TraceError


def test_results_are_tensors_and_the_function_keeps_its_name() -> None:
    @aj.function
    def affine(x: Any) -> Any:
        """Doc."""
        return 2.0 * x + 1.0

    y = affine(np.arange(3.0))
    assert type(y) is aj.Tensor
    assert y.tolist() == [1.0, 3.0, 5.0]
    assert (affine.__name__, affine.__doc__) == ("affine", "Doc.")
    assert affine(y).tolist() == [3.0, 7.0, 11.0]


# ---- cache


@pytest.mark.one_size("counts traces")
def test_traces_once_per_type() -> None:
    f = aj.function(lambda x, s: x * s)
    for s in (1.0, 2.0, 3.0):
        assert f(np.ones(2), s)[0] == s
    assert f.trace_count == 1
    f(np.ones(3), 1.0)
    f(np.ones(3, "f4"), 1.0)
    f(np.ones(3, "f4"), 1)
    f(np.ones(3, "f4"), np.float32(1))
    assert f.trace_count == f.cache_size == 5
    f(aj.tensor(np.ones(3, "f4")), np.float32(2))
    assert f.trace_count == 5


def test_python_scalars_are_weak() -> None:
    f = aj.function(lambda x, s: x * s)
    assert f(np.ones(2, "f4"), 2.0).dtype == np.float32
    assert f(np.ones(2, "i4"), 2).dtype == np.int32
    assert f(np.ones(2, "i4"), 2.0).dtype == np.float64
    assert f(np.ones(2, "f4"), np.float64(2)).dtype == np.float64


def test_static_values_retrace() -> None:
    @aj.function
    def f(x: Any, mode: str | None = None, flag: bool = False) -> Any:
        y = np.exp(x) if mode == "exp" else x
        return -y if flag else y

    x = np.zeros(2)
    assert f(x, "exp")[0] == 1.0
    assert f(x, None)[0] == 0.0
    assert f(x, mode="exp", flag=True)[0] == -1.0
    assert f(x, mode="exp", flag=False)[0] == 1.0
    assert f.trace_count == 4


def test_static_arguments_may_be_declared() -> None:
    @aj.function(static=["axis"])
    def f(x: Any, axis: Any) -> Any:
        return x.sum(axis)

    x = np.ones((2, 3))
    assert f(x, 0).shape == (3,)
    assert f(x, axis=1).shape == (2,)
    assert f(x, (0, 1)).shape == ()
    assert aj.function(lambda x, n: np.tile(x, n), static=[1])(np.ones(2), 3).shape == (6,)
    with pytest.raises(ValueError, match="not a parameter"):
        aj.function(lambda x: x, static=["y"])


def test_an_argument_that_is_neither_array_nor_hashable_is_refused() -> None:
    f = aj.function(lambda x, options: x)
    with pytest.raises(TypeError, match=r"argument 1\['a'\] is a set"):
        f(1.0, {"a": {1, 2}})
    with pytest.raises(DTypeError, match="argument 0: dtype"):
        f(np.ones(2, np.clongdouble), "s")
    with pytest.raises(DTypeError, match="does not fit"):
        f(2**70, "s")


def test_the_cache_is_bounded_and_drops_the_least_recently_used() -> None:
    f = aj.function(lambda x: x + 1.0, max_traces=2, dynamic=False)
    one, two, three = np.ones(1), np.ones(2), np.ones(3)
    f(one), f(two), f(one), f(three)
    assert (f.cache_size, f.trace_count) == (2, 3)
    f(one)
    assert f.trace_count == 3
    f(two)
    assert (f.cache_size, f.trace_count) == (2, 4)


def test_clear_cache() -> None:
    f = aj.function(lambda x: x)
    f(1.0)
    f.clear_cache()
    assert f.cache_size == 0
    f(1.0)
    assert f.trace_count == 2


def test_a_deleted_function_frees_its_code() -> None:
    f = aj.function(lambda x: x)
    f(1.0)
    gone = weakref.ref(next(iter(f._cache.values())).executable)
    del f
    gc.collect()
    assert gone() is None


def test_a_dict_in_another_order_is_traced_again() -> None:
    """A function may iterate over a dict (`test_dicts_are_seen_in_their_own_order`)."""
    f = aj.function(lambda d, **more: d["a"] - d["b"] * more["scale"] + more["add"])
    assert f({"a": 5.0, "b": 2.0}, scale=2.0, add=np.zeros(1)).tolist() == [1.0]
    assert f({"b": 2.0, "a": 5.0}, scale=2.0, add=np.zeros(1)).tolist() == [1.0]
    assert f.trace_count == 2


def test_the_order_of_keywords_counts_only_where_a_function_sees_it() -> None:
    f = aj.function(lambda scale, add: 2.0 * scale + add)
    assert f(scale=2.0, add=1.0) == f(add=1.0, scale=2.0) == 5.0
    assert f.trace_count == 1
    g = aj.function(lambda **named: next(iter(named.values())) * 1.0)
    assert [float(g(scale=2.0, add=1.0)), float(g(add=1.0, scale=2.0))] == [2.0, 1.0]


def test_structures_are_distinguished() -> None:
    f = aj.function(lambda *args, **kwargs: len(args) + len(kwargs), reduce_retracing=True)
    x = np.ones(2)
    calls: list[Any] = [
        ((x, x), {}), (([x, x],), {}), (((x, x),), {}), (([x], x), {}), ((x, [x]), {}), (({"a": x}, x), {}), (({"a": x},), {"a": x}),
        ((x,), {"a": x}), ((x, {"a": x}), {}), ((x, None, x), {}), ((x, "a"), {}), ((x, True), {}), ((x, 1), {}), ((x, 1.0), {}),
        ((x,), {"a": 1}),
    ]  # fmt: skip
    for args, kwargs in calls * 2:
        assert f(*args, **kwargs).item() == len(args) + len(kwargs)
    assert f.trace_count == len(calls)


# ---- structures


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclass
class Params:
    w: Any
    b: Any


def test_structures_of_arguments_and_results() -> None:
    @aj.function
    def f(p: Params, rest: dict[str, Any], *more: Any, scale: float = 1.0) -> Any:
        return {"pair": Pair(p.w * scale, [rest["x"], None]), "name": "text", "more": more, "same": p}

    out = f(Params(np.ones(2), 3.0), {"x": np.zeros(1)}, 1.0, (2.0,), scale=5.0)
    assert out["pair"].a.tolist() == [5.0, 5.0]
    assert type(out["pair"]) is Pair
    assert out["pair"].b[1] is None
    assert out["name"] == "text"
    assert [out["more"][0].item(), out["more"][1][0].item()] == [1.0, 2.0]
    assert type(out["same"]) is Params


@pytest.mark.parametrize("value", [None, (), {}, [], {"a": ()}, "text"])
def test_results_without_arrays(value: Any) -> None:
    f = aj.function(lambda x: value)
    assert f(1.0) == value
    assert f(1.0) == value


def test_no_arguments_and_constant_results() -> None:
    f = aj.function(lambda: (1.5, np.arange(3), aj.zeros((2, 2))))
    for _ in range(2):
        a, b, c = f()
        assert (a.item(), b.tolist(), c.tolist()) == (1.5, [0, 1, 2], [[0.0, 0.0], [0.0, 0.0]])


def test_results_that_are_arguments_are_not_shared() -> None:
    x = np.ones(3)
    y = aj.function(lambda x: x)(x)
    x[0] = 5.0
    assert y[0] == 1.0


# ---- arrays as they come


@pytest.mark.parametrize(
    "x",
    [
        np.arange(12.0).reshape(3, 4).T,
        np.arange(12.0)[::-1],
        np.arange(24.0).reshape(4, 6)[::2, 1::2],
        np.broadcast_to(np.float64(3), (2, 3)),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.zeros((0, 3)),
        np.float64(2.0),
        np.frombuffer(bytes(17), np.uint8)[1:].view("f8"),
    ],
    ids=["transposed", "reversed", "strided", "broadcast", "fortran", "empty", "scalar", "unaligned"],
)
def test_layouts(x: Any) -> None:
    for given in (x, aj.tensor(x)):
        got = aj.function(lambda x: x * 2.0 + 1.0)(given)
        assert np.array_equal(got.numpy(), np.asarray(x) * 2.0 + 1.0)


def test_read_only_arguments() -> None:
    x = np.ones(3)
    x.flags.writeable = False
    assert aj.function(lambda x: x + 1.0)(x)[0] == 2.0


# ---- methods, wrappers


class Model:
    def __init__(self, scale: float) -> None:
        self.scale = scale
        self.w = aj.Variable(scale)

    @aj.function
    def call(self, x: Any, power: float = 1.0) -> Any:
        return self.scale * x * power + self.w

    @aj.function
    def step(self, x: Any) -> None:
        self.w.assign_add(x)


def test_methods_belong_to_their_objects() -> None:
    a, b = Model(1.0), Model(10.0)
    assert (a.call(2.0).item(), b.call(2.0).item(), a.call(3.0, power=2.0).item()) == (3.0, 30.0, 7.0)
    b.step(1.0)
    assert (a.w.item(), b.w.item(), b.call(2.0).item()) == (1.0, 11.0, 31.0)
    assert Model(5.0).call(1.0).item() == 10.0
    assert a.call.inspect(2.0).traced.startswith("func @call(")


def test_methods_do_not_keep_their_objects() -> None:
    model = Model(1.0)
    model.call(1.0)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@dataclass
class Line:
    slope: Any

    @aj.function
    def at(self, x: Any) -> Any:
        return self.slope * x


def test_methods_of_structures_take_them_as_arguments() -> None:
    before = Line.at.trace_count
    assert Line(2.0).at(3.0).item() == 6.0
    assert Line(5.0).at(3.0).item() == 15.0
    assert Line.at.trace_count == before + 1


@aj.function
def module_level(x: Any) -> Any:
    return x + 1.0


def test_partial_copy_pickle_and_callables() -> None:
    assert aj.function(functools.partial(lambda a, b: a - b, 10.0))(4.0).item() == 6.0
    assert functools.partial(aj.function(lambda a, b: a - b), 10.0)(4.0).item() == 6.0
    assert copy.deepcopy(module_level) is module_level
    assert pickle.loads(pickle.dumps(module_level)) is module_level

    class Callable:
        def __call__(self, x: Any) -> Any:
            return x * 3.0

    assert aj.function(Callable())(2.0).item() == 6.0
    with pytest.raises(TypeError, match="callable"):
        aj.function(3)  # type: ignore[call-overload]


# ---- nesting


def test_nested_functions_become_part_of_the_outer_one() -> None:
    inner = aj.function(lambda x: x * x)
    outer = aj.function(lambda x: inner(x) + inner(np.ones(2)))
    assert outer(np.array([2.0, 3.0])).tolist() == [5.0, 10.0]
    assert inner.trace_count == 0

    @aj.function
    def gradient(x: Any) -> Any:
        with aj.GradientTape() as tape:
            tape.watch(x)
            y = inner(x)
        return tape.gradient(y, x)

    assert gradient(3.0).item() == 6.0


def test_leaked_values_are_refused() -> None:
    kept: list[Any] = []

    @aj.function
    def f(x: Any) -> Any:
        kept.append(x + 1.0)
        return x

    f(1.0)
    with pytest.raises(TraceError):
        kept[0] + 1.0
    with pytest.raises(TraceError):
        f(kept[0])


# ---- exceptions


def test_exceptions_leave_the_next_call_clean() -> None:
    w = aj.Variable([1.0, 2.0])
    fail = True

    @aj.function
    def f(x: Any) -> Any:
        w.assign_add([1.0, 1.0])
        with aj.GradientTape() as tape:
            y = (w * x).sum()
            if fail:
                x @ np.ones((3, 3))
        return tape.gradient(y, w)

    with pytest.raises(ShapeError, match=r"test_function.py:\d+.*in f"):
        f(np.ones(2))
    assert current_builder() is None
    assert w.numpy().tolist() == [1.0, 2.0]
    assert f.cache_size == 0
    fail = False
    assert f(np.ones(2)).tolist() == [1.0, 1.0]
    assert w.numpy().tolist() == [2.0, 3.0]


def test_exceptions_of_the_users_pass_through() -> None:
    @aj.function
    def f(x: Any) -> Any:
        raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            f(1.0)
    assert current_builder() is None


# ---- eager mode


def test_eager_mode_runs_the_python_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aj.config, "eager", True)
    calls: list[type] = []

    @aj.function
    def f(x: Any, s: float) -> Any:
        calls.append(type(x))
        return {"y": np.mean(x * s), "s": s}

    for _ in range(2):
        out = f(np.ones(2), 2.0)
        assert type(out["y"]) is aj.Tensor
        assert isinstance(out["s"], aj.Tensor)
        assert out["s"].weak
        assert out["y"].item() == 2.0
    assert calls == [aj.Tensor, aj.Tensor]
    assert f.trace_count == 0


def test_misspelt_settings_raise() -> None:
    with pytest.raises(AttributeError, match="no setting"):
        aj.config.eagre = True  # type: ignore[attr-defined]


# ---- threads


def test_two_threads_compile_once() -> None:
    entered = threading.Barrier(4)
    traced: list[int] = []

    @aj.function
    def f(x: Any) -> Any:
        traced.append(1)
        return x * 2.0 + 1.0

    results: list[float] = []

    def work() -> None:
        entered.wait()
        results.append(f(np.full(3, 2.0))[0].item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [5.0] * 4
    assert len(traced) == 1


def test_threads_update_and_read_a_variable() -> None:
    w = aj.Variable(np.zeros(50_000))

    @aj.function
    def step() -> None:
        w.assign_add(1.0)

    step()
    torn: list[Any] = []

    def write() -> None:
        for _ in range(100):
            step()

    def read() -> None:
        for _ in range(100):
            seen = w.numpy()
            if seen[0] != seen[-1]:
                torn.append(seen)

    threads = [threading.Thread(target=target) for target in (write, read, write, read)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not torn
    assert w[0].item() == 201.0


def test_threads_are_bounded_and_change_no_bit() -> None:
    x = np.random.default_rng(0).standard_normal((700, 600)).astype(np.float32)

    def total(x):
        return (np.exp(x @ x.T * 0.01)).sum(), np.tanh(x).sum(0)

    one, many = aj.function(total, threads=1), aj.function(total, threads=3)
    assert "adjit_parallel" not in one.inspect(x).llvm
    assert "adjit_parallel" in many.inspect(x).llvm
    for a, b in zip(one(x), many(x), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()
    for wrong in (0, -1, 2.0, "all"):
        with pytest.raises(ValueError, match="threads"):
            aj.function(total, threads=wrong)
        with pytest.raises(ValueError, match="threads"):
            aj.config.threads = wrong


@pytest.mark.parametrize("make", [lambda: (k for k in range(3)), lambda: iter([1, 2]), lambda: map(float, [1, 2]), lambda: zip([1], [2])])
def test_iterators_are_no_arguments(make: Callable[[], Any]) -> None:
    """A call would repeat the elements that were taken while it was traced."""
    with pytest.raises(TypeError, match=r"argument 1 is a .*: a compiled function would take its elements once"):
        aj.function(lambda x, it: x + next(it))(np.ones(2), make())
