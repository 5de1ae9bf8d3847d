"""`config.debug_lines`: instructions know the user's lines, results stay the same, and nothing changes while it is off."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.cache.image import key_of
from adjit.codegen.kernel_texts import kernel_texts
from adjit.codegen.kernels.literals import MIN_STATEMENTS, is_large
from adjit.codegen.llvm.debug_lines import Marked, annotated, files_of
from adjit.ir.location import Location

X = np.linspace(-1.0, 1.0, 6000, dtype="f4").reshape(60, 100)
MAP = Path(f"/tmp/perf-{os.getpid()}.map")
LARGE = np.linspace(-1.0, 1.0, 1_000_000, dtype="f4")


def elementwise(x: Any) -> Any:
    a = np.exp(x) * 2.0
    b = np.tanh(x + 1.0)
    return a - b


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    total = np.sum(e, axis=1, keepdims=True)
    return e / total


def product(x: Any) -> Any:
    h = x @ x.T
    return np.maximum(h + 1.0, 0.0)


def loop(x: Any) -> Any:
    total = x[0, 0]
    for k in aj.range(4):
        total = total * 0.5 + x[k, k]
        if total > 100.0:
            total = total - 1.0
    return total + np.sum(x)


def gradient(x: Any) -> Any:
    with aj.GradientTape() as tape:
        tape.watch(x)
        y = np.sin(x) @ np.ones((100, 3), "f4")
        loss = np.sum(y * y)
    return tape.gradient(loss, x)


def parallel(x: Any) -> Any:
    y = np.sin(x) * x
    return np.cumsum(y)


PROGRAMS: list[tuple[Callable[[Any], Any], Any]] = [
    *((f, X) for f in (elementwise, softmax, product, loop, gradient)),
    (parallel, LARGE),
]
programs = pytest.mark.parametrize(("program", "x"), PROGRAMS, ids=[f.__name__ for f, _ in PROGRAMS])


@pytest.fixture
def lines() -> Iterator[None]:
    aj.config.debug_lines = True
    yield
    aj.config.debug_lines = False
    MAP.unlink(missing_ok=True)


def lines_of(program: Callable[[Any], Any]) -> range:
    """The lines of a function's body."""
    first = program.__code__.co_firstlineno
    return range(first + 1, max(line for *_, line in program.__code__.co_lines() if line is not None) + 1)


def executable_of(f: Any) -> Any:
    return f.inspect(X)._executable


def without_lines(llvm: str) -> str:
    """The text with all metadata removed but the weights of branches."""
    text = re.sub(r",? !dbg !\d+", "", llvm)
    return "\n".join(line for line in text.split("\n") if not re.match(r"!(?:llvm|[1-9])", line))


@programs
def test_results_are_the_same_and_lines_are_those_of_the_function(lines: None, program: Callable[[Any], Any], x: Any) -> None:
    with_lines = aj.function(program)
    marked, seen = np.asarray(with_lines(x)), with_lines.inspect(x)
    aj.config.debug_lines = False
    plain = aj.function(program)
    np.testing.assert_array_equal(marked, np.asarray(plain(x)))

    assert seen.llvm.count("!DICompileUnit(") >= 1
    known = {int(line) for line in re.findall(r"!DILocation\(line: (\d+)", seen.llvm)}
    assert known <= set(lines_of(program))
    assert len(known) > 1
    assert set(files_of(seen.asm).values()) == {__file__}
    directives = {int(line) for line in re.findall(r"\t\.loc\t\d+ (\d+)", seen.asm)} - {0}
    assert directives <= known
    assert len(directives) > 1
    assert ".debug_info" not in seen.asm


@programs
def test_every_instruction_of_a_kernel_has_a_line(lines: None, program: Callable[[Any], Any], x: Any) -> None:
    llvm = aj.function(program).inspect(x).llvm
    assert " ;@" not in llvm
    bodies = re.findall(r"^define [^\n]*@(?:k\d|adjit_main)[^\n]* !dbg !\d+ \{\n(.*?)\n\}$", llvm, re.MULTILINE | re.DOTALL)
    assert len(bodies) > 1
    for body in bodies:
        assert [line for line in body.split("\n") if line and not line.endswith(":") and ", !dbg !" not in line] == []


@programs
def test_without_the_switch_there_is_no_trace_of_it(program: Callable[[Any], Any], x: Any) -> None:
    seen = aj.function(program).inspect(x)
    assert not re.search(r"!dbg|!DI| ;@", seen.llvm)
    assert not re.search(r"\t\.loc|\.debug_", seen.asm)


def test_lines_add_nothing_but_metadata(lines: None) -> None:
    marked = aj.function(elementwise).inspect(X).llvm
    aj.config.debug_lines = False
    plain = aj.function(elementwise).inspect(X).llvm
    assert without_lines(marked).strip() == plain.replace("define hidden ", "define ").strip()


def test_lines_of_assembly_are_those_of_ops_in_a_fused_kernel(lines: None) -> None:
    f = aj.function(elementwise)
    f(X)
    executable = executable_of(f)
    (kernel,) = kernel_texts(executable.optimized, executable.target)
    assert len(kernel.places) == len(kernel.asm.split("\n"))
    found = {place for place in kernel.places if place is not None}
    assert found == {(__file__, line) for line in lines_of(elementwise)}
    assert not re.search(r"\.loc|\.Ltmp|\.file", kernel.asm)


def test_kernels_of_large_programs_are_shared_only_within_a_line(lines: None) -> None:
    def unrolled(x: Any) -> Any:
        for _ in [None] * (MIN_STATEMENTS // 4):
            x = np.cumsum(np.tanh(x))
            x = np.cumsum(np.tanh(x))
        return x

    f = aj.function(unrolled)
    marked, seen = np.asarray(f(X[0])), f.inspect(X[0])
    assert is_large(seen._executable.optimized.block)
    defined = re.findall(r'DISubprogram\(name: "unrolled\.k\d+", .*? line: (\d+),', seen.llvm)
    first = unrolled.__code__.co_firstlineno
    assert {str(first + 2), str(first + 3)} == set(defined)
    assert min(map(defined.count, defined)) >= 2  # a fused kernel and a sum on each line
    assert len(defined) < 20
    aj.config.debug_lines = False
    np.testing.assert_array_equal(marked, np.asarray(aj.function(unrolled)(X[0])))


def test_the_disk_cache_knows_the_lines() -> None:
    here = executable_of(aj.function(elementwise)).func
    space: dict[str, Any] = {"np": np}
    source = "\n\n" + Path(__file__).read_text(encoding="utf-8").partition("def elementwise")[2].partition("\n\n\n")[0]
    exec(compile(f"def elementwise{source.strip()}", "moved.py", "exec"), space)
    moved = executable_of(aj.function(space["elementwise"])).func
    assert key_of(here, ()) == key_of(moved, ())
    if key_of(here, ()) is not None:
        assert len({key_of(here, ()), key_of(here, (), lines=True), key_of(moved, (), lines=True)}) == 3


@pytest.mark.skipif(sys.platform != "linux", reason="perf is a tool of Linux")
def test_perf_finds_the_functions(lines: None) -> None:
    f = aj.function(parallel)
    f(LARGE)
    rows = [line.split(" ", 2) for line in MAP.read_text(encoding="utf-8").splitlines()]
    spans = {name: (int(start, 16), int(size, 16)) for start, size, name in rows}
    assert {"parallel.adjit_main", "parallel.k0", "parallel.k0.chunk0"} <= set(spans)
    assert spans["parallel.adjit_main"][0] == f.inspect(LARGE)._executable.native.address
    ends = sorted((start, start + size) for start, size in spans.values())
    assert all(stop <= following for (_, stop), (following, _) in pairwise(ends))
    assert MAP.stat().st_mode & 0o777 == 0o600


SCRIPT = """\
import numpy as np
import adjit as aj

@aj.function
def f(x):
    y = np.exp(x)
    return y * np.sum(y)

f(np.ones(100))
"""


@pytest.mark.skipif(sys.platform != "linux" or shutil.which("gdb") is None, reason="there is no GDB here")
def test_gdb_stops_at_lines(tmp_path: Path) -> None:
    script = tmp_path / "traced.py"
    script.write_text(SCRIPT, encoding="utf-8")
    commands = ["set breakpoint pending on", "break traced.py:7", "run", "backtrace 1"]
    given = [word for command in commands for word in ("-ex", command)]
    environment = {**os.environ, "ADJIT_DEBUG_LINES": "1", "TMPDIR": str(tmp_path)}
    command = ["gdb", "-q", "-batch", "-nx", *given, "--args", sys.executable, str(script)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False, stdin=subprocess.DEVNULL)
    if "ptrace" in done.stderr:
        pytest.skip("processes may not be traced here")
    assert re.search(r"^#0 .*\bf\.(?:k\d|adjit_main).* at .*traced\.py:7$", done.stdout, re.MULTILINE), done.stdout + done.stderr


def test_names_of_files_and_functions_may_have_any_characters() -> None:
    lines = Marked(["entry:"])
    lines.location = Location('/tmp/a "b"\\ü\n;@1.py', 3, 7, 'f"<é>')
    lines += ["%v1 = add i64 1, 2\n%v2 = add i64 %v1, 3", "br label %b1", "b1:", ""]
    lines[4] = "%v3 = add i64 %v2, 1"
    assert lines[2] == "br label %b1"
    text = annotated(
        "\n".join(["define hidden void @k0() nounwind {", *lines, "ret void", "}", "", "define void @other() {", "ret void", "}"])
    )
    assert text.count(", !dbg !") == 5
    assert r'filename: "a \22b\22\5C\C3\BC\0A;@1.py", directory: "/tmp"' in text
    assert "define void @k0() nounwind !dbg !4 {" in text
    assert "define void @other() {\nret void\n}" in text
    assert annotated("define void @other() {\nret void\n}") == "define void @other() {\nret void\n}"
