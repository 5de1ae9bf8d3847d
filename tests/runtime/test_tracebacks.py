"""Errors end at the user's line: tracebacks have no frames of adjit, whichever public entry point raises the error."""

from __future__ import annotations

import contextlib
import operator
import pickle
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.ir import tracebacks
from adjit.ir.errors import NotGeneral
from adjit.ir.ops.elementary import Asinh

X, W = np.ones((3, 4)), np.ones((5, 2))


def wrong(x: Any) -> Any:
    return np.sum(np.tanh(x) @ W)  # shapes that do not fit


def missing(x: Any) -> Any:
    for _ in aj.range(3):
        if np.sum(x) > 0:
            x = x + nowhere  # type: ignore[name-defined]  # noqa: F821
    return np.sum(x)


def outside(x: Any) -> Any:
    return np.sum(x[np.array(7)])


class Model:
    @aj.function
    def call(self, x: Any) -> Any:
        return wrong(x)


def taped(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(t := aj.tensor(x))
        y = t * 2.0
    return tape.gradient(y, "nothing")


def built() -> aj.nn.Module:
    model = aj.nn.Sequential([aj.nn.Dense(2)])
    model(np.ones((1, 4), "f4"))
    return model


CALLS: dict[str, Callable[[], Any]] = {
    "function": lambda: aj.function(wrong)(X),
    "float() of several numbers": lambda: float(aj.tensor([1.0, 2.0])),
    "bool() of several numbers": lambda: bool(aj.Variable([1.0, 2.0])),
    "format of several numbers": lambda: f"{aj.tensor([1.0, 2.0]):.2f}",
    "index by several numbers": lambda: [1, 2][aj.tensor([1, 2])],
    "len() of a number": lambda: len(aj.tensor(1.0)),
    "iteration over a number": lambda: list(aj.tensor(1.0)),
    "item of several numbers": lambda: aj.tensor([1.0, 2.0]).item(),
    "item of a variable": lambda: aj.Variable([1.0, 2.0])[7],
    "write out of bounds": lambda: operator.setitem(aj.tensor([1.0]), 3, 2.0),
    "update out of bounds": lambda: aj.tensor([1.0]).at[3].set(2.0),
    "method of a tensor": lambda: aj.tensor([1.0]).astype("string"),
    "tensor of a text": lambda: aj.tensor("text"),
    "tensor of rows that differ": lambda: aj.tensor([[1, 2], [3]]),
    "creation": lambda: aj.zeros(-1),
    "joining": lambda: aj.stack([aj.tensor([1.0, 2.0]), aj.tensor([1.0])]),
    "reduction": lambda: aj.logsumexp(aj.tensor([1.0]), axis=4),
    "linalg": lambda: aj.linalg.cholesky(-np.eye(2)),
    "special": lambda: aj.special.gammaln("text"),
    "fft": lambda: aj.fft.fft(aj.tensor([1.0]), axis=3),
    "einsum": lambda: aj.einsum("ij,jk", np.ones((2, 2)), np.ones((3, 3))),
    "random": lambda: aj.random.normal(3, (2,)),
    "loss function": lambda: aj.nn.losses.sparse_categorical_crossentropy(np.array([5]), np.ones((1, 3))),
    "function of a number": lambda: aj.function(3),  # type: ignore[call-overload]
    "static argument": lambda: aj.function(lambda x: x, static=["y"]),
    "method": lambda: Model().call(X),
    "name of another framework": lambda: aj.jit,
    "name of another framework in a function": lambda: aj.function(lambda x: aj.jit(x))(X),
    "name in aj.linalg": lambda: aj.linalg.no_such_name,
    "name in aj.random": lambda: aj.random.no_such_name,
    "name in nn": lambda: aj.nn.layers,
    "name in tf": lambda: aj.tf.strings,
    "name in tf.math": lambda: aj.tf.math.no_such_name,
    "attribute of a tensor of tf": lambda: aj.tf.constant(1.0).no_such_name,
    "grad": lambda: aj.grad(wrong)(X),
    "compiled grad": lambda: aj.function(aj.grad(wrong))(X),
    "value_and_grad": lambda: aj.value_and_grad(wrong)(X),
    "vjp": lambda: aj.vjp(wrong, X),
    "jvp": lambda: aj.jvp(wrong, (X,), (X,)),
    "linearize": lambda: aj.linearize(wrong, X),
    "jacobian": lambda: aj.jacobian(wrong)(X),
    "hessian": lambda: aj.hessian(wrong)(X),
    "vmap": lambda: aj.vmap(wrong)(X),
    "checkpoint": lambda: aj.checkpoint(wrong)(aj.tensor(X)),
    "control flow": lambda: aj.function(missing)(X),
    "native code": lambda: aj.function(outside)(X),
    "eager operator": lambda: aj.tensor(X) @ W,
    "eager ufunc": lambda: np.add(aj.tensor(X), W),
    "eager function": lambda: np.concatenate([aj.tensor(X), W]),
    "eager index": lambda: aj.tensor(X)[9],
    "tape": lambda: taped(X),
    "inspect": lambda: aj.function(wrong).inspect(X),
    "profile": lambda: aj.function(wrong).profile(X),
    "debug": lambda: aj.function(lambda x: np.sum(np.log(x - 1.0))).debug(X),
    "concrete function": lambda: aj.function(wrong).get_concrete_function(X),
    "variable": lambda: aj.Variable(X).assign(W),
    "layer": lambda: built()(np.ones((1, 5), "f4")),
    "constructor of a layer": lambda: aj.nn.Conv2D(-1, 3),
    "constructor of a trainer": lambda: aj.nn.Trainer(aj.nn.Dense(1), "no such loss"),
    "trainer": lambda: aj.nn.Trainer(aj.nn.Dense(1), "mse").fit(X, X[:2], verbose=0),
    "prediction": lambda: aj.nn.Trainer(built(), "mse").predict(np.ones((1, 5), "f4")),
    "optimizer": lambda: aj.nn.optimizers.Adam(learning_rate="fast"),
    "metric": lambda: aj.nn.metrics.TopKCategoricalAccuracy(k="five")(X, X),
    "loss": lambda: aj.nn.losses.SparseCategoricalCrossentropy()(np.ones((3, 4)), X),
    "variable in a function": lambda: aj.function(lambda v, x: v.assign_sub(x))(aj.Variable(X), W),
}  # fmt: skip


@pytest.fixture
def short() -> Iterator[None]:
    before, aj.config.full_tracebacks = aj.config.full_tracebacks, False
    yield
    aj.config.full_tracebacks = before


def frames(error: BaseException) -> list[FrameType]:
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", CALLS)
def test_tracebacks_show_only_the_users_frames(name: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - of several classes
        CALLS[name]()
    shown = frames(caught.value)
    assert [f for f in shown if tracebacks.package_of(f) in ("adjit", "contextlib", "functools")] == []
    assert shown[-1].f_globals["__name__"] == __name__
    text = "".join(traceback.format_exception(caught.value))
    assert "/adjit/" not in text.replace(__file__, "")


@pytest.mark.usefixtures("short")
def test_the_last_frame_is_the_line_that_is_wrong() -> None:
    with pytest.raises(aj.ShapeError) as caught:
        aj.function(aj.grad(wrong))(X)
    last = traceback.extract_tb(caught.value.__traceback__)[-1]
    assert (last.name, last.line) == ("wrong", "return np.sum(np.tanh(x) @ W)  # shapes that do not fit")


@pytest.mark.usefixtures("short")
def test_everything_is_shown_on_request() -> None:
    aj.config.full_tracebacks = True
    with pytest.raises(aj.ShapeError) as caught:
        aj.function(wrong)(X)
    assert any(tracebacks.package_of(f) == "adjit" for f in frames(caught.value))


@pytest.mark.usefixtures("short")
def test_bugs_keep_their_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Asinh, "evaluate", operator.attrgetter("nowhere"))
    with pytest.raises(AttributeError) as caught:
        np.arcsinh(aj.tensor(X))
    assert any(tracebacks.package_of(f) == "adjit" for f in frames(caught.value))


@pytest.mark.usefixtures("short")
def test_errors_that_led_to_it_are_trimmed_too() -> None:
    def handled(x: Any) -> Any:
        try:
            return wrong(x)
        except aj.ShapeError as error:
            raise RuntimeError("cannot go on") from error

    with pytest.raises(RuntimeError, match="cannot go on") as caught:
        aj.function(handled)(X)
    assert isinstance(caught.value.__cause__, aj.ShapeError)
    for error in (caught.value, caught.value.__cause__):
        assert all(tracebacks.package_of(f) != "adjit" for f in frames(error))


@pytest.mark.usefixtures("short")
def test_an_error_that_is_being_handled_is_left_alone() -> None:
    """It may be the context of itself, through a chain that Python does not forbid."""
    first, second = ValueError("first"), ValueError("second")
    first.__context__, second.__context__ = second, first

    def raising(x: Any) -> Any:
        raise first

    with pytest.raises(ValueError, match="first"):
        aj.function(raising)(X)


def test_errors_are_named_as_users_import_them() -> None:
    classes = [aj.AdjitError, *aj.AdjitError.__subclasses__()]
    for cls in classes:
        if cls.__module__ == "adjit" and cls is not NotGeneral:  # which only chooses between compilations
            assert getattr(aj, cls.__name__) is cls
            assert type(pickle.loads(pickle.dumps(cls("text")))) is cls
    with contextlib.suppress(aj.ShapeError):
        aj.function(wrong)(X)
    assert repr(aj.ShapeError) == "<class 'adjit.ShapeError'>"


@pytest.mark.usefixtures("short")
def test_files_that_do_not_fit(tmp_path: Any) -> None:
    layer = aj.nn.Dense(2)
    layer(np.ones((1, 3), "f4"))
    path = tmp_path / "w.safetensors"
    aj.nn.save(path, layer)
    for call in (lambda: aj.nn.load(path, aj.nn.Dense(2)), lambda: aj.nn.save(path, aj.nn.Dense(2))):
        with pytest.raises(aj.nn.weights.WeightsError) as caught:
            call()
        files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert set(files) == {__file__}
