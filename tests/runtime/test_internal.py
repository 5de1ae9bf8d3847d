"""Faults inside the compiler are reported as bugs in adjit, with the program in a file; the user's own errors are unchanged."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen import compile as compiling
from adjit.codegen.kernels import kernels, region, registers
from adjit.codegen.main import flow, module
from adjit.ir.errors import UnsupportedError
from adjit.ir.ops.elementary import Tanh
from adjit.ir.parser import parse_func
from adjit.passes.pipeline import OPTIMIZE

X = np.linspace(-1.0, 1.0, 5)
FAULT = {}.__getitem__  # of C: no frame of this file appears in the traceback


def program(x: Any) -> Any:
    y = np.tanh(x) * 2.0  # the line that is looked for
    total = 0.0
    while total < 3.0:
        total = total + np.sum(y * y) + 0.5
    return y * total


def checked(caught: pytest.ExceptionInfo[aj.InternalError], cause: type[Exception], has_file: bool = True) -> str:
    error = caught.value
    assert isinstance(error, RuntimeError)
    assert isinstance(error.__cause__, cause)
    message = str(error)
    assert "a bug in adjit, not in your program" in message
    assert re.search(r"test_internal\.py:\d+", message), "the user's line"
    found = re.search(r"is in (\S+\.ir)", message)
    assert bool(found) is has_file
    if found is None:
        return ""
    text = Path(found[1]).read_text(encoding="utf-8")
    Path(found[1]).unlink()
    assert type(error.__cause__).__name__ in text
    return text


@pytest.mark.parametrize("name", OPTIMIZE.passes)
def test_a_fault_in_a_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = aj.function(program)
    with monkeypatch.context() as patch:
        patch.setitem(OPTIMIZE.passes, name, FAULT)
        with pytest.raises(aj.InternalError) as caught:
            function(X)
    text = checked(caught, KeyError)
    assert parse_func(text).name == "program"  # the reported program can be run
    np.testing.assert_allclose(function(X), program(X))  # nothing of it stays


@pytest.mark.parametrize(
    ("where", "what"),
    [
        (flow, "fused_kernel"), (module, "register_kernel"), (region, "add_nest"), (compiling, "Module"),
        (registers.RegisterKernel, "statement"), (kernels.Kernel, "definition"), (compiling, "Image"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_a_fault_in_code_generation(where: Any, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function = aj.function(program)
    with monkeypatch.context() as patch:
        patch.setattr(where, what, FAULT)
        with pytest.raises(aj.InternalError) as caught:
            function(X)
    checked(caught, Exception)
    np.testing.assert_allclose(function(X), program(X))


def of_adjit(error: Exception) -> Any:
    """A function that raises `error`, as if it were defined in a module of adjit's."""
    module = {"__name__": "adjit.codegen.broken", "error": error}
    exec("def broken(*args): raise error", module)
    return module["broken"]


@pytest.mark.parametrize("error", [KeyError("k"), AssertionError(), AttributeError("a"), aj.ShapeError("s"), aj.AdjitError("a")], ids=repr)
def test_what_counts_as_a_fault(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "fused_kernel", of_adjit(error))
    with pytest.raises(aj.InternalError) as caught:
        aj.function(program)(X)
    assert caught.value.__cause__ is error
    checked(caught, type(error))


@pytest.mark.parametrize("error", [MemoryError(), OSError("no space left on device"), UnsupportedError("not yet")], ids=repr)
def test_what_does_not(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "fused_kernel", of_adjit(error))
    with pytest.raises(type(error)) as caught:
        aj.function(program)(X)
    assert caught.value is error


def test_a_fault_that_llvm_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels.Kernel, "definition", lambda self: "define void @{}() { this is not LLVM }\n")
    with pytest.raises(aj.InternalError) as caught:
        aj.function(lambda x: np.tanh(x) * 3.25)(X)
    assert "LLVM" in str(checked(caught, aj.AdjitError))


def test_a_fault_in_a_derivative(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = lambda x: np.sum(np.tanh(x))  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(Tanh, "derivative", FAULT)
        with pytest.raises(aj.InternalError) as caught:
            aj.function(aj.grad(loss))(X)
        assert "tanh" in checked(caught, TypeError)
        with pytest.raises(aj.InternalError):
            aj.grad(loss)(X)
        with pytest.raises(aj.InternalError):
            aj.jvp(loss, (X,), (X,))
        with pytest.raises(aj.InternalError):
            aj.function(aj.jacobian(np.tanh))(X)
    np.testing.assert_allclose(aj.function(aj.grad(loss))(X), 1 - np.tanh(X) ** 2)


def test_a_fault_in_batching(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tanh, "widened", FAULT)
    with pytest.raises(aj.InternalError):
        aj.vmap(np.tanh)(X)


# ---- errors of the user's


def test_what_a_signal_handler_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handlers run between any two instructions of Python, those of passes and of code generation too."""

    class TooLongError(Exception):
        pass

    def handler(*_: Any) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGTERM, handler)
    function = aj.function(program)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(flow, "fused_kernel", lambda *_: signal.raise_signal(signal.SIGTERM))
            with pytest.raises(TooLongError):
                function(X)
    finally:
        signal.signal(signal.SIGTERM, before)
    np.testing.assert_allclose(function(X), program(X))


def test_errors_of_the_traced_function_pass() -> None:
    def missing(x: Any) -> Any:
        return x * {"a": 1.0}["b"]

    for function in (missing, aj.grad(missing), aj.function(missing), aj.function(aj.grad(missing)), aj.vmap(missing)):
        with pytest.raises(KeyError, match="b") as caught:
            function(X)
        assert type(caught.value) is KeyError


def test_errors_of_a_custom_gradient_pass() -> None:
    @aj.custom_gradient
    def f(x: Any) -> Any:
        return np.sum(x), lambda upstream: {}["b"]

    for function in (aj.grad(f), aj.function(aj.grad(f))):
        with pytest.raises(KeyError, match="b") as caught:
            function(X)
        assert type(caught.value) is KeyError
