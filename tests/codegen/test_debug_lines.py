"""`config.debug_lines`: instructions carry the user's lines, results stay the same, and nothing changes while it is off."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import struct
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
from adjit.codegen.llvm import perf
from adjit.codegen.llvm.debug_lines import annotated, files_of
from adjit.codegen.llvm.elf import Elf
from adjit.codegen.llvm.line_table import rows_of
from adjit.codegen.llvm.marks import Marked
from adjit.codegen.llvm.toolchain import LEVEL, assembly, compiled
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


@pytest.mark.one_size("compares texts of kernels")
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


def test_lines_are_part_of_the_disk_cache_key() -> None:
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


# ---- perf's binary file


class Dumped:
    """A file for perf, read back: functions with their addresses, code and entries of lines."""

    def __init__(self, path: Path) -> None:
        content = path.read_bytes()
        magic, version, size, self.machine, _, self.pid, _, flags = struct.unpack_from("<IIIIIIQQ", content)
        assert (magic, version, size, flags) == (0x4A695444, 1, 40, 0)
        self.code: dict[str, tuple[int, bytes]] = {}
        self.lines: dict[str, list[tuple[int, int, str]]] = {}
        entries: dict[int, list[tuple[int, int, str]]] = {}
        at, before, numbers = size, 0, []
        while at < len(content):
            kind, length, time = struct.unpack_from("<IIQ", content, at)
            record, at = content[at + 16 : at + length], at + length
            assert time >= before
            before = time
            if kind == 2:
                address, count = struct.unpack_from("<QQ", record)
                assert not entries  # those of the function that follows
                entries[address], start = [], 16
                for _ in range(count):
                    place, line, _ = struct.unpack_from("<QII", record, start)
                    end = record.index(0, start + 16)
                    entries[address].append((place, line, record[start + 16 : end].decode()))
                    start = end + 1
                assert start == len(record)
            else:
                assert kind == 0
                pid, tid, vma, address, size, number = struct.unpack_from("<IIQQQQ", record)
                assert (pid, vma) == (self.pid, address)
                assert tid > 0
                numbers.append(number)
                end = record.index(0, 40)
                name = record[40:end].decode()
                self.code[name] = address, record[end + 1 :]
                assert len(record) == end + 1 + size
                self.lines[name] = entries.pop(address, [])
                assert not entries
        assert at == len(content)
        assert numbers == sorted(set(numbers))


@pytest.fixture
def folder(lines: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file for perf is written: a folder of this test alone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(perf, "_dump", None)
    return tmp_path / f"adjit-perf-{os.getuid()}"


needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="perf is a tool of Linux")


@needs_linux
@programs
def test_perf_is_given_code_and_lines(folder: Path, program: Callable[[Any], Any], x: Any) -> None:
    f = aj.function(program)
    f(x)
    seen = f.inspect(x)
    path = folder / f"jit-{os.getpid()}.dump"
    assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o600)
    assert re.search(rf"^\S+ r-xp .* {path}$", Path("/proc/self/maps").read_text(encoding="utf-8"), re.MULTILINE)
    dumped = Dumped(path)
    assert dumped.pid == os.getpid()
    main = f"{program.__name__}.adjit_main"
    assert dumped.code[main][0] == seen._executable.native.address
    found = set()
    for name, (address, code) in dumped.code.items():
        assert ctypes.string_at(address, len(code)) == code
        places = [place for place, *_ in dumped.lines[name]]
        assert places == sorted(places)
        if places:
            assert (places[0], places[-1]) == (address, address + len(code))
        found |= {(file, line) for _, line, file in dumped.lines[name]}
    directives = {int(line) for line in re.findall(r"\t\.loc\t\d+ (\d+)", seen.asm)} - {0}
    assert found == {(__file__, line) for line in directives}


@needs_linux
def test_programs_and_processes_are_distinguished(folder: Path) -> None:
    for program in (elementwise, softmax):
        aj.function(program)(X)
    dumped = Dumped(folder / f"jit-{os.getpid()}.dump")
    assert {"elementwise.k0", "softmax.k0", "elementwise.adjit_main", "softmax.adjit_main"} <= set(dumped.code)
    child = os.fork()
    if child == 0:
        aj.function(product)(X)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    theirs = Dumped(folder / f"jit-{child}.dump")
    assert theirs.pid == child
    assert {name.partition(".")[0] for name in theirs.code} == {"product"}
    assert Dumped(folder / f"jit-{os.getpid()}.dump").code == dumped.code


@needs_linux
def test_a_folder_of_somebody_else_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(mode=0o700)
    folder.chmod(0o777)
    monkeypatch.setattr(perf, "_failed", False)
    f = aj.function(elementwise)
    with pytest.warns(RuntimeWarning, match="perf will not show the lines of compiled functions: .* others may write to it"):
        got = f(X)
    np.testing.assert_allclose(got, elementwise(X), rtol=1e-5)
    aj.function(softmax)(X)  # no second warning
    assert list(folder.iterdir()) == []


def test_rows_of_lines_are_those_of_the_text(lines: None) -> None:
    """The table of an object has the lines and columns that its assembly has."""
    native = aj.function(softmax).inspect(X)._executable.native
    for text in native.texts():
        rows = [row for row in rows_of(Elf(compiled(text, native.target, LEVEL))) if row.line]
        directives = re.findall(r"\t\.loc\t\d+ (\d+) (\d+)", assembly(text, native.target))
        assert {(row.line, row.column) for row in rows} == {(int(line), int(column)) for line, column in directives if line != "0"}
        assert {row.file for row in rows} <= {__file__}
        offsets = [row.offset for row in rows]
        assert offsets == sorted(offsets)


LOOP = """\
import numpy as np
import adjit as aj

@aj.function
def hot(x):
    y = np.exp(x)
    return np.cumsum(np.cumsum(y))

for _ in range(10_000):
    hot(np.ones(2_000))
"""


@needs_linux
@pytest.mark.skipif(shutil.which("perf") is None, reason="there is no perf here")
@pytest.mark.one_size("asks for the time of kernels, which is that of their chunks")
def test_perf_reports_lines(tmp_path: Path) -> None:
    (tmp_path / "profiled.py").write_text(LOOP, encoding="utf-8")

    def run(*command: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "ADJIT_DEBUG_LINES": "1", "TMPDIR": str(tmp_path)}
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)

    record = "perf", "record", "-k", "mono", "-e", "cpu-clock:u", "-F", "2000", "-o", "raw"
    if (tried := run(*record, "true")).returncode:
        pytest.skip(f"perf may not record here: {tried.stderr}")
    for command in ((*record, sys.executable, "profiled.py"), ("perf", "inject", "--jit", "-i", "raw", "-o", "injected")):
        done = run(*command)
        assert done.returncode == 0, done.stderr
    for kernel, line in (("hot.k0", 6), ("hot.k1", 7)):
        summary = run("perf", "annotate", "-i", "injected", "--stdio", "-l", kernel).stdout.partition(" Percent |")[0]
        assert re.search(rf"\d profiled\.py:{line}\n", summary), summary


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
    assert "define void @k0() nounwind !dbg !5 {" in text
    assert "define void @other() {\nret void\n}" in text
    assert annotated("define void @other() {\nret void\n}") == "define void @other() {\nret void\n}"
