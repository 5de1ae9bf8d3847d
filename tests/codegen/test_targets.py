"""Machines other than this one: the settings that choose them, every vector width on every level, and what their code may call."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.cache import image
from adjit.codegen.compile import built, compile_func
from adjit.codegen.llvm import target
from adjit.codegen.llvm import toolchain as llvm
from adjit.codegen.llvm.target import LEVELS, WIDTHS, current, described, named, names_of
from adjit.codegen.threads.library import DTYPES, POOL, RUNNERS
from adjit.ir import ops
from adjit.ir.errors import UnsupportedError
from adjit.ir.interpreter import run
from adjit.ir.ops.base import Array
from adjit.ir.ops.convolution import conv
from adjit.ir.target import USUAL, Target
from adjit.ir.types import DTYPES as BY_NAME
from adjit.passes.pipeline import OPTIMIZE
from tests.ops.cases import Case
from tests.ops.harness import assert_close, func_of
from tests.ops.test_rows import ROWS

TRIPLE, CPU, FEATURES = llvm.host()
on_x86 = pytest.mark.skipif(not TRIPLE.startswith("x86_64"), reason="levels of x86-64")
OURS = [name for name in LEVELS if names_of(name) <= {word for word, has in FEATURES.items() if has}] if TRIPLE.startswith("x86_64") else []
ARM = Target("aarch64-unknown-linux-gnu", "generic", vector_bytes=16, vector_registers=32, fma=True, rounding=True, threads=2)

# ---- settings


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """An environment without settings of ours, which is read again."""
    for name in ("ADJIT_TARGET", "ADJIT_VECTOR_BYTES", "ADJIT_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    target._machine.forget()
    yield monkeypatch
    monkeypatch.undo()
    target._machine.forget()


def test_the_host_by_default(fresh: pytest.MonkeyPatch) -> None:
    machine = current()
    assert (machine.triple, machine.cpu) == (TRIPLE, CPU)
    assert machine.vector_bytes in WIDTHS
    assert machine.threads >= 1
    assert 1 << 12 <= machine.caches[0] <= machine.caches[1]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_width_is_a_setting(fresh: pytest.MonkeyPatch, width: int) -> None:
    fresh.setenv("ADJIT_VECTOR_BYTES", str(width))
    assert current().vector_bytes == width
    assert current().cpu == CPU


@on_x86
@pytest.mark.parametrize("level", OURS)
def test_the_level_is_a_setting(fresh: pytest.MonkeyPatch, level: str) -> None:
    fresh.setenv("ADJIT_TARGET", level)
    wanted = {"x86-64": (16, False, False), "x86-64-v2": (16, False, True), "x86-64-v3": (32, True, True), "x86-64-v4": (64, True, True)}
    machine = current()
    assert (machine.cpu, machine.features) == (level, "")
    assert (machine.vector_bytes, machine.fma, machine.rounding) == wanted[level]


@pytest.mark.parametrize(("name", "value"), [("ADJIT_TARGET", "pentium"), ("ADJIT_VECTOR_BYTES", "48"), ("ADJIT_VECTOR_BYTES", "wide")])
def test_other_values_are_refused(fresh: pytest.MonkeyPatch, name: str, value: str) -> None:
    fresh.setenv(name, value)
    with pytest.raises(ValueError, match=rf"{name}={value}: choose one of .*(host|16)"):
        current()


def test_a_level_that_the_cpu_lacks_is_refused() -> None:
    old = dict.fromkeys(names_of("x86-64-v3"), True) | {"avx512f": False}
    assert named("x86-64-v3", "x86_64-unknown-linux-gnu", "haswell", old).vector_bytes == 32
    with pytest.raises(UnsupportedError, match=r"ADJIT_TARGET=x86-64-v4: this CPU \(haswell\) does not have avx512bw, .*avx512f"):
        named("x86-64-v4", "x86_64-unknown-linux-gnu", "haswell", old)


def test_settings_distinguish_targets() -> None:
    """They are part of the names of cache entries."""
    machine = current()
    others = [machine._replace(vector_bytes=8), machine._replace(fma=not machine.fma), machine.with_threads(99), machine._replace(cpu="x")]
    assert len({each.settings for each in (machine, *others)}) == 5
    func = func_of(ops.exp, [np.ones(3)])
    keys = {image.key_of(func, each.settings) for each in (machine, *others)}
    assert len(keys) == 5 or keys == {None}


# ---- every width on every level

RNG = np.random.default_rng(0)


def floats(*shape: int, dtype: str = "f4") -> Array:
    return RNG.standard_normal(shape).astype(dtype)


PROGRAMS: dict[str, tuple[Callable[..., Any], list[Array]]] = {
    "elementwise": (lambda x, y: ops.tanh(x * y) + ops.floor(x * 3.0), [floats(7, 53), floats(7, 53)]),
    "sums": (lambda x: [x.sum((0,)), x.sum((1,)), x.sum((0, 1))], [floats(37, 61)]),
    "bytes turned around": (lambda x: x.transpose((1, 0)) + 0, [(RNG.standard_normal((300, 177)) * 50).astype("u1")]),
    "floats turned around": (lambda x: x.transpose((1, 0)) * 2.0, [floats(130, 200)]),
    "a small product": (ops.matmul, [floats(13, 17), floats(17, 11)]),
    "a product": (ops.matmul, [floats(131, 70), floats(70, 97)]),
    "a product of few rows": (ops.matmul, [floats(5, 80), floats(80, 97)]),
    "a product with few rows left over": (ops.matmul, [floats(29, 70), floats(70, 97)]),
    "a product of doubles": (ops.matmul, [floats(67, 70, dtype="f8"), floats(70, 45, dtype="f8")]),
    "a product of turned factors": (
        lambda a, b: ops.matmul(a.transpose((1, 0)), b.transpose((1, 0))), [floats(70, 131), floats(97, 70)],
    ),
    "a convolution": (conv, [floats(2, 11, 13, 5), floats(3, 3, 5, 9)]),
    "a running total": (lambda x: ops.cumsum(x, 1), [floats(5, 77)]),
    "integers": (lambda x, y: ops.maximum(x, y) * 3 - x, [RNG.integers(-99, 99, (9, 41)).astype(d) for d in ("i2", "i2")]),
}  # fmt: skip


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("level", OURS or ["host"])
def test_every_width_runs_on_every_level(level: str, width: int) -> None:
    machine = current() if level == "host" else described(TRIPLE, level, {}, names_of(level))
    for name, (call, arrays) in PROGRAMS.items():
        func = func_of(call, arrays)
        got = compile_func(OPTIMIZE(func), machine._replace(vector_bytes=width, threads=2))(arrays)
        try:
            assert_close(got, run(func, *arrays), f32=2e-5, absolute=1)
        except AssertionError as error:
            raise AssertionError(f"{name}, {level}, {width} bytes: {error}") from None


def test_passes_decide_by_the_target_that_they_are_given() -> None:
    """Values that stay in the first-level cache are not recomputed: a stencil's nest depends only on the size of that cache."""
    x = floats(6000, dtype="f8")
    func = aj.function(aj.grad(lambda u: np.sum(np.exp(u[1:] - u[:-1])))).inspect(x)._func
    small, large = (OPTIMIZE(func, USUAL._replace(caches=(size, 1 << 20))) for size in (1 << 12, 1 << 20))
    assert str(small) != str(large)
    assert_close(run(small, x), run(large, x))


# ---- what the code may call

SIGNALS = {"adjit_look", "PyGILState_Ensure", "PyGILState_Release", "PyErr_CheckSignals", "PyErr_Fetch"}
MEMORY = {"memcpy", "memmove", "memset"}


def undefined(code: bytes) -> set[str]:
    """Names that object code in ELF wants from elsewhere."""
    sections, size, count = struct.unpack_from("<Q", code, 0x28)[0], *struct.unpack_from("<HH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", code, sections + size * k) for k in range(count)]
    found = set()
    for _, kind, _, _, start, length, link, *_ in headers:
        if kind == 2:  # the table of symbols; `link` is the section with their names
            names = headers[link][4]
            for at in range(start, start + length, 24):
                name, _, _, section = struct.unpack_from("<IBBH", code, at)
                if section == 0 and name:
                    found.add(code[names + name : code.index(b"\0", names + name)].decode())
    return found


def called(case: Case, machine: Target) -> set[str]:
    """The functions that the kernels of a row call, except those for memory and our own routines."""
    args = case.draw(BY_NAME[case.dtypes[0]])
    made = built(OPTIMIZE(func_of(case.call, args)), machine)
    names = set[str]().union(*(undefined(each.code) for each in made.image.objects))
    own = {name for text in made.texts for name in re.findall(r"^define .*?@([\w.]+)\(", text, re.MULTILINE)}
    known = MEMORY | own | set(made.image.imports) | set(made.hosts)
    return {name for name in names if name not in known and not name.startswith("adjit_")}


PLAIN = Target("x86_64-unknown-linux-gnu", "x86-64", vector_bytes=16, threads=2)


@pytest.mark.parametrize("case", ROWS, ids=repr)
def test_no_kernel_calls_libm_on_a_plain_cpu(case: Case) -> None:
    """LLVM calls libm, for each lane, where a CPU has no instruction: for `fma` that was 75 times slower."""
    if not TRIPLE.startswith("x86_64"):
        pytest.skip("needs LLVM for x86-64")
    assert called(case, PLAIN) == set()


@on_x86
def test_calls_of_libm_are_seen() -> None:
    """The test above can fail: for a CPU that is declared with a feature that it lacks, LLVM calls libm."""
    floor = next(row for row in ROWS if row.name == "floor")
    assert any(name.startswith("floor") for name in called(floor, PLAIN._replace(rounding=True)))


@pytest.fixture(scope="module")
def arm() -> Target:
    import llvmlite.binding as binding

    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        binding.Target.from_triple(ARM.triple)
    except RuntimeError as error:
        pytest.skip(f"this llvmlite cannot compile for aarch64: {error}")
    return ARM


@pytest.mark.parametrize("case", ROWS, ids=repr)
def test_every_op_compiles_for_aarch64(case: Case, arm: Target) -> None:
    assert called(case, arm) == set()


def test_routines_compile_for_aarch64(arm: Target) -> None:
    from adjit.codegen.threads import library

    for part in {POOL, *map(library._part_of, (*RUNNERS, *DTYPES))}:
        system = {"syscall", "pthread_create", "pthread_attr_init", "pthread_self", "clock_gettime", *SIGNALS}
        pieces = [library._assembled(part, arm, k).code for k in range(len(library._codes(part, arm)))]
        between = {name for name in undefined(pieces[-1]) if name.startswith("tile")}  # the micro-kernel, in the first piece
        shared = {name for names in library.INNER_NAMES.values() for name in names} if part in library.PACKED else set()
        assert bool(between) == (part in library.NAMES.values())
        assert set().union(*map(undefined, pieces)) <= {*MEMORY, *system, *between, *shared}
