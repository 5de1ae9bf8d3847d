"""input_signature, get_concrete_function, retrace warnings, partials, and the objects kept after a function is deleted."""

from __future__ import annotations

import functools
import gc
import re
import warnings
import weakref
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import DTypeError, ShapeError

ANY_ROWS = aj.TensorSpec([None, 2], "f32")


def rows(n: int) -> Any:
    return np.ones((n, 2), "f4")


class TestInputSignature:
    @pytest.fixture
    def total(self) -> Any:
        return aj.function(lambda x, s: x.sum() * s, input_signature=[ANY_ROWS, aj.TensorSpec([], "f32")])

    def test_takes_what_fits(self, total: Any) -> None:
        assert [total(rows(n), 2.0).item() for n in (1, 3, 3)] == [4.0, 12.0, 12.0]
        assert total([[1, 2], [3, 4]], 1).item() == 10.0
        assert total(s=1.0, x=rows(2)).item() == 4.0
        assert total(aj.tensor(rows(2)), np.float32(3)).item() == 12.0

    def test_refuses_what_does_not(self, total: Any) -> None:
        with pytest.raises(ShapeError, match=re.escape("argument 'x' is f32[2,3], but its input_signature is f32[None,2]")):
            total(np.ones((2, 3), "f4"), 1.0)
        with pytest.raises(ShapeError, match=re.escape("is f32[2], but")):
            total(np.ones(2, "f4"), 1.0)
        with pytest.raises(DTypeError, match=r"is f64\[2,2\].*astype\('float32'\)"):
            total(np.ones((2, 2)), 1.0)
        with pytest.raises(TypeError, match="called with 1 positional"):
            total(rows(1))
        with pytest.raises(TypeError, match="called with 3 positional"):
            total(rows(1), 1.0, 2.0)
        with pytest.raises(TypeError, match="other"):
            total(rows(1), other=1.0)
        with pytest.raises(DTypeError):
            aj.function(lambda n: n, input_signature=[aj.TensorSpec([], "i32")])(1.5)

    def test_is_checked_inside_of_traces_and_eagerly_too(self, total: Any) -> None:
        with pytest.raises(ShapeError, match="input_signature"):
            aj.function(lambda x: total(x, 1.0))(np.ones((2, 3), "f4"))
        aj.config.eager = True
        try:
            with pytest.raises(ShapeError, match="input_signature"):
                total(np.ones((2, 3), "f4"), 1.0)
        finally:
            aj.config.eager = False

    def test_structures(self) -> None:
        f = aj.function(lambda p: p["w"] @ p["b"], input_signature=[{"w": ANY_ROWS, "b": aj.TensorSpec([2], "f32")}])
        assert f({"w": rows(3), "b": np.ones(2, "f4")}).tolist() == [2.0, 2.0, 2.0]
        with pytest.raises(ShapeError, match=r"argument 'p'\['b'\]"):
            f({"w": rows(3), "b": np.ones(3, "f4")})
        with pytest.raises(TypeError, match="structure"):
            f({"w": rows(3)})

    def test_methods(self) -> None:
        class Model:
            @aj.function(input_signature=[ANY_ROWS])
            def __call__(self, x: Any) -> Any:
                return x.sum()

        assert Model()(rows(2)).item() == 4.0
        with pytest.raises(ShapeError):
            Model()(np.ones(3, "f4"))

    def test_a_spec_is_made_of_integers_and_none(self) -> None:
        with pytest.raises(ShapeError, match="integers and None"):
            aj.TensorSpec(["a"])
        with pytest.raises(TypeError, match="made of TensorSpec"):
            aj.function(lambda x: x, input_signature=[3])
        assert repr(aj.TensorSpec([None, 2], "f64", "x")) == "TensorSpec(f64[None,2], name='x')"
        assert aj.TensorSpec([2]) == aj.TensorSpec((2,), np.float32)
        assert str(aj.TensorSpec(None, "i64")) == "i64[...]"


class TestConcreteFunctions:
    @pytest.mark.one_size("prints signatures")
    def test_from_arrays_specs_and_static_values(self) -> None:
        f = aj.function(lambda x, kind: x * 2.0 if kind == "double" else x)
        double = f.get_concrete_function(aj.TensorSpec([2], "f64"), "double")
        assert f.trace_count == 1
        assert double(np.ones(2), "double").tolist() == [2.0, 2.0]
        assert f.trace_count == 1
        assert double.pretty_printed_signature() == "<lambda>(x: f64[2], kind='double') -> f64[2]"
        assert "mul" in double.inspect().traced
        with pytest.raises(ShapeError):
            double(np.ones(3), "double")
        with pytest.raises(TypeError, match="'kind' is 'single'"):
            double(np.ones(2), "single")
        with pytest.raises(TypeError, match="structure"):
            double(np.ones(2))
        assert f.get_concrete_function(np.ones(2), "double").structured_input_signature == ((aj.TensorSpec([2], "f64"), "double"), {})

    def test_unknown_sizes_compile_when_they_come(self) -> None:
        f = aj.function(lambda x: x.sum())
        some = f.get_concrete_function(aj.TensorSpec([None], "f64"))
        assert f.trace_count == 0
        assert [some(np.ones(n)).item() for n in (1, 2, 2)] == [1.0, 2.0, 2.0]
        assert f.trace_count == 2
        assert some.pretty_printed_signature() == "<lambda>(x: f64[None])"
        with pytest.raises(ShapeError, match="each size"):
            some.inspect()

    @pytest.mark.one_size("prints signatures")
    def test_of_the_input_signature_and_of_methods(self) -> None:
        class Model:
            scale = 3.0

            @aj.function(input_signature=[aj.TensorSpec([2], "f32")])
            def __call__(self, x: Any) -> Any:
                return x * self.scale

        concrete = Model().__call__.get_concrete_function()
        assert concrete.pretty_printed_signature() == "__call__(x: f32[2]) -> f32[2]"
        assert concrete(np.ones(2, "f4")).tolist() == [3.0, 3.0]

    @pytest.mark.one_size("prints signatures")
    def test_a_function_prints_all_its_signatures(self) -> None:
        f = aj.function(lambda x, n=1: (x, x), name="pair")
        f(np.ones(2), n="a")
        f(3.0)
        assert f.pretty_printed_signature() == "pair(x: f64[2], n='a') -> (f64[2], f64[2])\npair(x: float) -> (f64[], f64[])"


def call_all(f: Any, calls: Any) -> None:
    for args in calls:
        f(*args)


class TestRetraces:
    def test_a_streak_of_traces_that_are_used_once_warns(self) -> None:
        f = aj.function(lambda x, y: x.sum() + y, name="loss", dynamic=False)
        with pytest.warns(aj.RetraceWarning, match=r"loss has been compiled 5 times.*`x`: dim 0 was 4, is 5\.") as caught:
            call_all(f, [(np.ones(n), 1.0) for n in range(1, 6)])
        assert caught[0].filename == __file__

    @pytest.mark.parametrize(
        ("calls", "words"),
        [
            ([(np.ones(2, d), 1) for d in ("f4", "f8", "i4", "i8", "u1")], "`x`: dtype was i64, is u8"),
            ([(1.0, str(n)) for n in range(5)], "`n`: was '3', is '4'"),
            ([([1.0] * n, 0) for n in range(1, 9)], "the structure of the arguments"),
            ([(np.ones((1,) * n), 0) for n in range(5)], r"`x`: was f64\[1,1,1\], is f64\[1,1,1,1\]"),
        ],
    )
    def test_it_says_what_changed(self, calls: Any, words: str) -> None:
        f = aj.function(lambda x, n: x)
        with pytest.warns(aj.RetraceWarning, match=words):
            call_all(f, calls)

    def test_traces_that_are_used_again_do_not(self) -> None:
        f = aj.function(lambda x: x.sum())
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for n in range(1, 20):
                f(np.ones(n))
                f(np.ones(n))

    def test_reduce_retracing_silences(self) -> None:
        f = aj.function(lambda x: x.sum(), reduce_retracing=True)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for n in range(1, 12):
                f(np.ones(n))


def test_partials() -> None:
    f = aj.function(functools.partial(lambda a, b, c: a * b + c, 2.0, c=np.ones(2)))
    assert f(np.array([1.0, 2.0])).tolist() == [3.0, 5.0]
    assert f(np.array([1.0, 2.0]), c=0.0).tolist() == [2.0, 4.0]
    assert functools.partial(aj.function(lambda a, b: a - b), 5.0)(3.0).item() == 2.0


def test_a_deleted_function_is_freed() -> None:
    def make() -> Any:
        big = np.ones(1000)
        f = aj.function(lambda x: x + big)
        f(np.zeros(1000))
        return f

    f = make()
    native = weakref.ref(next(iter(f._cache.values())).executable)
    gone = weakref.ref(f)
    del f
    gc.collect()
    assert gone() is None
    assert native() is None


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda k: {"a": 1.0, str(k): 2.0}, r"`d\.3` gone; `d\.4` new"),
        (lambda k: {str(n): 1.0 for n in range(k + 1)}, r"`d\.4` new"),
    ],
    ids=["keys", "more"],
)
def test_the_warning_names_the_difference_in_a_structure(make: Any, text: str) -> None:
    func = aj.function(lambda d: d)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for k in range(5):
            func(make(k))
    assert len(caught) == 1
    assert re.search("structure of the arguments: " + text, str(caught[0].message))


def test_structures_are_spelt_as_python() -> None:
    _, tree = aj.tree_flatten(({"b": 1, "a": [2, (3,)]}, None))
    assert str(tree) == "TreeDef(({'a': [*, (*,)], 'b': *}, None))"
    assert str(aj.tree_flatten(1.0)[1]) == "TreeDef(*)"
