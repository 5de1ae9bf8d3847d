"""Ctrl-C at every point where Python checks for signals, while native objects are created and freed: none is lost or freed twice."""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from adjit.codegen.llvm import binding, owned, target
from adjit.codegen.llvm import toolchain as llvm

TEXT = "define i64 @answer() { ret i64 42 }"
PAIRS = {
    "LLJIT_Link": "LLJIT_Dylib_Tracker_Dispose",
    "CreateLLJITCompiler": "LLJITDispose",
    "CreateTargetMachine": "DisposeTargetMachine",
    "CreateTargetMachineData": "DisposeTargetData",
    "ContextCreate": "ContextDispose",
    "TargetMachineEmitToMemory": "DisposeMemoryBuffer",
}
PLACES = ("owned.py", "toolchain.py", "binding.py")


class Interrupt:
    """Raises KeyboardInterrupt once, at the `at`-th point in PLACES: a Python function begins there, or one of C has returned."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event in ("call", "c_return") and Path(frame.f_code.co_filename).name in PLACES:
            self.seen += 1
            if self.seen == self.at:
                raise KeyboardInterrupt


def interrupted(work: Callable[[], object], at: int) -> bool:
    """Do the work; whether it came to the point where it was to be interrupted."""
    interrupt = Interrupt(at)
    sys.setprofile(interrupt)
    try:
        work()
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(None)
    return interrupt.seen >= at


@pytest.fixture
def _swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python reports an interrupt in a destructor, and continues."""
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)


@contextmanager
def counted(live: Counter[str]) -> Iterator[None]:
    """Count the objects that LLVM has created and not freed."""
    functions = {name: binding.function(name) for pair in PAIRS.items() for name in pair}

    def made(name: str, result: Any, function: Any, arguments: Any) -> Any:
        live[name] += bool(result)
        return result

    def freed(name: str, result: Any, function: Any, arguments: Any) -> Any:
        live[name] -= 1
        return result

    for create, free in PAIRS.items():  # ctypes calls these before it returns
        functions[create].errcheck, functions[free].errcheck = partial(made, create), partial(freed, create)
    try:
        yield
    finally:
        for function in functions.values():
            del function.errcheck


def compile_and_link() -> None:
    code = llvm.compiled(TEXT, target.current(), 0)
    library = llvm.Library([llvm.Object(b"", code)], ["answer"], {})
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(library.address["answer"])() == 42


def drop_shared() -> None:
    """The objects that are kept for the next compilation."""
    llvm.host.forget()
    llvm._layout.forget()
    llvm._machines.clear()
    llvm._linker.cache_clear()
    owned.free()


@pytest.mark.usefixtures("_swallowed")
def test_nothing_of_llvm_is_lost() -> None:
    compile_and_link()
    gc.collect()
    drop_shared()
    live: Counter[str] = Counter()
    known = owned.live()
    lost = []
    with counted(live):
        for at in count(1):
            before = live.total()
            reached = interrupted(lambda: (compile_and_link(), drop_shared()), at)
            drop_shared()
            if live.total() != before:
                lost.append((at, dict(live)))
            if not reached:
                break
    assert at > 50, "the points of interest were not found"
    assert not lost
    assert owned.live() == known


@pytest.mark.usefixtures("_swallowed")
def test_each_is_freed_once() -> None:
    """With functions of C that only count; owners that die one by one, and in a cycle."""
    numbers = count(1)

    def work() -> None:
        one = owned.Owned(partial(next, numbers), (), freed.append)
        two = owned.Owned(partial(next, numbers), (), freed.append)
        del one
        cycle: list[Any] = [two]
        cycle.append(cycle)
        del two, cycle
        gc.collect(0)

    gc.collect()  # what earlier tests have left
    owned.free()
    known, done = owned.live(), 0
    freed: list[int] = []
    for at in count(1):
        reached = interrupted(work, at)
        gc.collect(1)
        owned.free()
        assert sorted(freed) == list(range(done + 1, done + len(freed) + 1))
        done += len(freed)
        freed.clear()
        if not reached:
            break
    assert next(numbers) == done + 1
    assert owned.live() == known


@pytest.mark.skipif(sys.platform == "win32", reason="signals are raised the way of POSIX")
def test_a_signal_while_the_function_of_c_runs() -> None:
    """Python raises as soon as the call has returned."""
    create = ctypes.CDLL(None)["raise"]
    create.restype = (41).__add__  # of the 0 that it returns
    freed: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        owned.Owned(create, (signal.SIGINT,), freed.append)
    gc.collect()
    assert freed == [41]


@pytest.mark.skipif(sys.platform == "win32", reason="signals are raised the way of POSIX")
def test_a_signal_while_it_is_freed() -> None:
    """The exception is raised after the destructor."""
    owners = [owned.Owned(int, (int(signal.SIGINT),), ctypes.CDLL(None)["raise"])]
    known = owned.live()
    with pytest.raises(KeyboardInterrupt):
        end(owners)
    owned.free()
    assert owned.live() == known - 1


def end(owners: list[owned.Owned]) -> None:
    owners.clear()
    for _ in range(3):  # Python looks for signals here
        gc.isenabled()


def test_null_is_not_freed() -> None:
    freed: list[int] = []
    nothing = owned.Owned(int, (), freed.append)
    assert not nothing
    del nothing
    assert not freed


def test_a_function_that_raises_leaves_no_state() -> None:
    known = owned.live()
    with pytest.raises(ValueError, match="invalid literal"):
        owned.Owned(int, ("x",), print)
    gc.collect()
    assert owned.live() == known


def test_what_frees_gets_its_arguments_and_what_it_needs_is_kept() -> None:
    freed: list[int] = []
    owner = owned.Owned(int, ("7",), freed.insert, 70)
    assert owner._as_parameter_ == 7
    del owner
    assert freed.pop() == 70
    kept = owned.Owned(int, ("8",), freed.append)
    other = owned.Owned(int, ("9",), freed.append)
    owned.free_after(other, [], kept)
    del kept
    assert freed == []
    del other
    assert sorted(freed) == [8, 9]
