"""Modules in parts, compiled on separate threads."""

from __future__ import annotations

import os
import re
import threading
import time

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.llvm import parts, workers
from adjit.codegen.llvm.target import current
from adjit.codegen.llvm.workers import Later
from adjit.ir.errors import AdjitError

X = np.linspace(0.1, 1.0, 50)


def many_kernels(x: np.ndarray) -> np.ndarray:
    for k in range(1, 8):
        x = np.cumsum(np.sort(np.sin(x * k))) / (k + 1)  # neither fuses with what comes next
    return x


def expected(x: np.ndarray) -> np.ndarray:
    return np.asarray(many_kernels(x))


@pytest.mark.one_size("counts the kernels of its program")
def test_a_module_in_many_parts_has_the_same_results(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = aj.function(many_kernels)
    np.testing.assert_allclose(whole(X), expected(X), rtol=1e-9)
    monkeypatch.setattr(parts, "LINES", 1)
    cut = aj.function(many_kernels)
    assert (cut(X).numpy() == whole(X).numpy()).all()
    text = cut.inspect(X).llvm
    assert text.count("declare hidden void @k") >= len(set(re.findall(r"define hidden void (@k\d+)\(", text))) > 3
    assert cut.inspect(X).asm.count(".globl") > 3


def test_vector_math_that_is_called_stands_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    def chain(x: np.ndarray) -> np.ndarray:
        for k in range(40):
            x = np.cumsum(np.sin(x + k) * np.exp(-x * x)) / len(x)
        return x

    monkeypatch.setattr(parts, "LINES", 1)
    f = aj.function(chain)
    np.testing.assert_allclose(f(X), np.asarray(chain(X)), rtol=1e-9)
    defined = re.findall(r"^define hidden .* (@vecmath_\w+)\(", f.inspect(X).llvm, re.MULTILINE)
    assert any("sin" in name for name in defined)
    assert len(defined) == len(set(defined))


def test_an_error_of_a_thread_is_raised_where_its_result_is_wanted() -> None:
    broken = parts.Parts(current(), 2)
    nonsense = "define hidden void @k0() nounwind {\n" + "nonsense\n" * parts.LINES + "}\n"
    broken.add(nonsense, "declare hidden void @k0()", ())
    broken.finish("define void @main() nounwind {\nret void\n}\n", ["declare hidden void @k0()"], only_calls=True)
    with pytest.raises(AdjitError, match="invalid LLVM IR"):
        broken.objects()


def test_later_runs_elsewhere_and_here_on_a_single_core(monkeypatch: pytest.MonkeyPatch) -> None:
    if workers.cores() > 1:
        assert Later(threading.get_ident).result() != threading.get_ident()

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as m:
        m.setattr(threading.Thread, "start", refuse)
        assert Later(threading.get_ident).result() == threading.get_ident()
    monkeypatch.setattr(workers, "cores", lambda: 1)
    assert Later(threading.get_ident).result() == threading.get_ident()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_waits_for_threads_that_compile() -> None:
    """They may hold locks of LLVM, which would never be released in the child."""
    done: list[int] = []

    def slow() -> int:
        time.sleep(0.2)
        done.append(1)
        return 7

    begun = Later(slow)
    child = os.fork()
    if child == 0:
        finished = len(done) if workers.cores() > 1 else 1  # a single core waits for nothing: there is no thread
        os._exit(finished + begun.result() + Later(lambda: 1).result())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert begun.result() == 7
    assert not workers.are_busy()


@pytest.mark.one_size("counts the kernels of its program")
def test_the_main_function_of_a_long_program_has_short_blocks() -> None:
    """LLVM's time is quadratic in the length of a basic block."""

    def long(x: np.ndarray) -> np.ndarray:
        for _ in range(200):
            x = np.cumsum(np.sort(x))
        return x

    f = aj.function(long)
    x = X - 0.5
    np.testing.assert_allclose(f(x), long(x))
    main = re.search(r"define i64 @adjit_main\(.*?^}", f.inspect(x).llvm, re.DOTALL | re.MULTILINE)
    assert main is not None
    calls = [block.count("call ") for block in re.split(r"^\w+:$", main.group(), flags=re.MULTILINE)]
    assert sum(calls) >= 400
    assert max(calls) <= 64
