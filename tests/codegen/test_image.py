"""Programs from the disk cache: neither optimised nor generated again, and the same in everything that a user can observe."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.cache import disk as cache
from adjit.codegen.cache import image
from adjit.codegen.llvm.target import current
from adjit.runtime import executable

X = np.linspace(0.1, 1.0, 12)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ADJIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("ADJIT_VERIFY")
    monkeypatch.delenv("ADJIT_CACHE", raising=False)
    return tmp_path / "cache"


def program() -> aj.Function:
    def loss(x, i):
        return np.sum(np.tanh(x) * x) + x[i]

    return aj.function(aj.value_and_grad(loss))


@pytest.fixture
def optimised(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The functions that went through the passes."""
    seen: list[str] = []
    passes = executable.optimize

    def optimize(func, *settings):
        seen.append(func.name)
        return passes(func, *settings)

    monkeypatch.setattr(executable, "optimize", optimize)
    return seen


def test_the_second_comes_from_the_disk(optimised: list[str]) -> None:
    first = program()(X, 3)
    assert len(optimised) == 1
    again = program()
    value, gradient = again(X, 3)
    assert len(optimised) == 1
    assert value.numpy() == first[0].numpy()
    assert (gradient.numpy() == first[1].numpy()).all()
    seen = again.inspect(X, 3)
    assert seen.seconds["optimize"] == 0
    assert len(optimised) == 1
    assert "fuse" in seen.optimized
    assert "define i64 @adjit_main" in seen.llvm
    assert "adjit_main" in seen.asm


def test_errors_keep_their_words_and_their_line(optimised: list[str]) -> None:
    messages = []
    for _ in range(2):
        with pytest.raises(IndexError, match="index 99 is out of bounds") as caught:
            program()(X, 99)
        messages.append(str(caught.value))
    assert len(optimised) == 1
    assert messages[0] == messages[1]
    assert "test_image.py" in messages[0]


def test_errors_are_the_built_in_that_was_raised() -> None:
    def signed(x):
        if np.sum(x) < 0:
            raise KeyError("negative")
        return x

    for _ in range(2):
        with pytest.raises(KeyError, match="negative"):
            aj.function(signed)(-X)


@pytest.mark.parametrize("damage", [lambda p: p.unlink(), lambda p: p.write_bytes(p.read_bytes()[:-3]), lambda p: p.write_bytes(b"")])
def test_every_entry_that_is_damaged_is_made_again(folder: Path, optimised: list[str], damage) -> None:
    want = program()(X, 3)[1].numpy()
    entries = sorted(folder.glob("*" + cache.SUFFIX))
    assert len(entries) >= 2
    for entry in entries:
        damage(entry)
        assert (program()(X, 3)[1].numpy() == want).all()
        assert entry.exists()
    damaged = len(optimised)
    program()(X, 3)
    assert len(optimised) == damaged


def test_verifying_and_dumping_run_the_passes(optimised: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program()(X, 3)
    monkeypatch.setenv("ADJIT_VERIFY", "1")
    program()(X, 3)
    assert len(optimised) == 2
    monkeypatch.delenv("ADJIT_VERIFY")
    monkeypatch.setattr(aj.config, "dump", "fuse")
    monkeypatch.setattr(aj.config, "dump_directory", str(tmp_path / "dump"))
    program()(X, 3)
    assert len(optimised) == 3
    assert list((tmp_path / "dump").rglob("*.fuse.ir"))


def test_settings_have_images_of_their_own(optimised: list[str]) -> None:
    for threads in (1, 2, 1, 2):
        aj.function(lambda x: np.sin(x) + 1.0, threads=threads)(X)
    assert len(optimised) == 2


def test_python_functions_are_never_kept(optimised: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for k in range(2):

        @aj.function
        def shown(x, k=k):
            print("at", k, x[0])
            return x + 1.0

        shown(X)
    assert len(optimised) == 2
    assert capsys.readouterr().out.count("at ") == 2


def test_another_version_of_adjit_is_another_program(optimised: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    program()(X, 3)
    monkeypatch.setattr(image, "sources", lambda: "another")
    program()(X, 3)
    assert len(optimised) == 2
    monkeypatch.setattr(image, "sources", lambda: None)  # no source files: nothing is stored
    program()(X, 3)
    program()(X, 3)
    assert len(optimised) == 4


def test_sources_are_distinguished_by_size_and_time(tmp_path: Path) -> None:
    file = tmp_path / "inner" / "a.py"
    file.parent.mkdir()
    file.write_text("x = 1\n")
    before = list(image._files(str(tmp_path)))
    assert list(image._files(str(tmp_path))) == before
    os.utime(file, ns=(1, 1))
    assert list(image._files(str(tmp_path))) != before
    assert image.sources() is not None
    assert str(Path("codegen") / "cache" / "image.py") in str(image.sources())


CHILD = """
import sys
import numpy as np
import adjit as aj
f = aj.function(aj.grad(lambda x: np.sum((x @ x) ** 2)))
print(f(np.eye(200)).numpy().sum())
kernels = ("codegen.kernels.window", "codegen.vecmath", "codegen.loops.ir", "codegen.products.gemm", "codegen.main.module")
heavy = [name for name in (*kernels, "passes.fusion.fuse") if "adjit." + name in sys.modules]
print(*heavy)
"""


def test_a_warm_process_loads_nothing_that_compiles() -> None:
    def child() -> list[str]:
        run = subprocess.run([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True, check=True)
        return run.stdout.splitlines()

    first, heavy = child()
    assert len(heavy.split()) == 6
    assert child() == [first, ""]


def test_routines_are_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def text() -> str:
        written.append(1)
        return "define i64 @seven() nounwind {\nret i64 7\n}\n"

    target = current()
    first, second = (image.routine("seven", text, target, 2) for _ in range(2))
    assert first == second
    assert len(written) == 1
    monkeypatch.setattr(image, "sources", lambda: None)
    assert image.routine("seven", text, target, 2).code == first.code
    assert len(written) == 2
