"""Random programs, as Python source: NumPy, eager, interpreted and compiled, with each pass off in turn, and derivatives, all agree.

`ADJIT_PROGRAMS=20000` runs as many; `ADJIT_PROGRAMS_SEED=n`, which the head of a run prints, chooses where to begin.
A failing program is printed as a small one that fails in the same way, with the command that runs it again.
"""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import numpy as np
import pytest

from adjit.ir.func import Block, Func
from adjit.ir.ops.arithmetic import Add, Sub
from adjit.ir.ops.elementary import Tanh
from adjit.passes.pipeline import OPTIMIZE
from tests.programs.check import NEEDED, OPTIONAL, Mismatch, Stages, check
from tests.programs.draw import Draw, make_program
from tests.programs.grammar import RULES, program_of
from tests.programs.grammar_derivatives import by_tapes, mapped
from tests.programs.grammar_elementwise import smooth
from tests.programs.grammar_flow import nested, packed
from tests.programs.grammar_python import pieces, snippet
from tests.programs.program import Node, Program, line
from tests.programs.reference import numpy_side
from tests.programs.running import FIRST, run_programs, starts
from tests.programs.shrink import fails, shrunk
from tests.programs.snippets import CLOSURES, CONTAINERS, EXITS, OBJECTS
from tests.programs.snippets_derivatives import MAPS, TAPES

COUNT = int(os.environ.get("ADJIT_PROGRAMS", "100"))


@pytest.mark.parametrize("start", starts(COUNT))
def test_programs(start: int) -> None:
    run_programs(start, COUNT, program_of, "ADJIT_PROGRAMS=1 python -m pytest tests/programs/test_source_programs.py")


# ---- the generator and the checks themselves


def test_programs_are_reproducible() -> None:
    assert str(program_of(11)) == str(program_of(11))
    assert str(program_of(11)) != str(program_of(12))


def test_every_rule_is_used() -> None:
    """Over some hundred programs every kind of statement occurs, and so do empty arrays, scalars and small integers."""
    used, programs = some_programs()
    values = [value for program in programs for value in program.inputs.values()]
    shapes = {np.shape(value) for value in values}
    dtypes = {np.asarray(value).dtype.name for value in values}
    assert {make.__name__ for _, make in RULES} == set(used)
    assert {(), (1,), (0,), (0, 3), (1, 1)} <= shapes
    assert {"float32", "float64", "int8", "uint8", "int16", "int64", "bool"} <= dtypes


def test_deprecated_numpy_functions_are_not_drawn() -> None:
    """A check treats warnings as errors: such a program would fail because of NumPy."""

    def deprecated(d: Draw) -> Node:
        return d.assign("np.cross(np.ones(2), np.ones(2)) + np.sum(x0)")

    def sound(d: Draw) -> Node:
        return d.assign("np.sum(x0)")

    program = make_program(0, [(9, deprecated), (1, sound)])
    assert "np.sum(x0)" in program.source()
    assert "np.cross" not in program.source()


def test_branches_that_are_not_taken_are_sound() -> None:
    """They are traced all the same: drawing does not run them, and NumPy must be able to."""
    programs = [*some_programs()[1], *(make_program(seed, [(2, nested), (2, packed), (1, smooth)]) for seed in range(100))]
    for program in programs:
        source = re.sub(r"^( *(?:el)?if )(.*):$", r"\1not (\2):", program.source(), flags=re.MULTILINE)
        names = {**numpy_side(program.variables), "__name__": "random_program"}
        exec(source, names)
        if "while " in source:  # it may not end now
            continue
        with warnings.catch_warnings(action="ignore"), suppress(TypeError, IndexError, ValueError):  # of `if y is None`, `if k < n: y[k]`
            names["program"](*program.inputs.values())


CONSTRUCTS = {
    "negative step": r"\[.*::-\d", "negative index": r"\[-\d+[,\]]",
    "duplicate indices": r"\[(\[|np\.array\(\[)(.*, )?(-?\d+), (.*, )?\3[,\]]",
    "einsum": r"np\.einsum", "conv": r"lib\.conv", "pool": r"lib\.max_pool", "average pool": r"lib\.avg_pool", "cumsum": "cumsum",
    "sort": r"np\.sort", "cholesky": "cholesky", "qr": r"linalg\.qr", "solve": r"linalg\.solve", "inverse": r"linalg\.inv",
    "determinant": r"linalg\.(slog)?det", "eigenvalues": "eigvalsh", "singular values": r"linalg\.svd", "convolve": r"np\.convolve",
    "assignment": r"\.assign", "assignment in a block": r"\n        +w0\.assign", "branch": r"\n +if ", "while": r"\n +while ",
    "break": r"\n +break", "continue": r"\n +continue", "early return": r"\n        return .*\n    return",
    "list": r"\.append\(", "dict": r"= \{'a'",
    "nested function": r"\n    def ", "jvp": r"aj\.jvp", "vmap over grad": r"aj\.vmap\(aj\.grad", "jvp of grad": r"aj\.jvp\(aj\.grad",
    "scan": r"aj\.scan", "checkpoint": r"aj\.checkpoint", "custom gradient": r"aj\.custom_gradient",
    "masked write": r"v\d+\[.* [<>] .*\] [*+]?= ",
    "vmap over grad over while": r"def (g\d+)\(u\d+\):\n(        .*\n)*        while (.*\n)*?.*aj\.vmap\(aj\.grad\(\1\)\)",
    "hessian": r"aj\.hessian", "jacobian": r"aj\.jacobian", "vjp": r"aj\.vjp", "linearize": r"aj\.linearize", "hvp": r"aj\.hvp",
    "gradient of a dict": r"aj\.grad\(lambda p: ", "custom vjp": r"aj\.custom_vjp", "custom jvp": r"aj\.custom_jvp",
    "scan of structures": r"aj\.scan\(lambda c, u: \(\{", "switch": r"aj\.switch", "einsum with ellipsis": r"einsum\('[^']*\.\.\.",
    "several index arrays": r"np\.ix_|\[:, None\], np\.ravel", "ufunc.at": r"\.at\(", "putmask": r"np\.(putmask|place|copyto|put)\(",
    "ufunc methods": r"\.(reduce|accumulate|outer)\(",
    "grad over branch": r"def (g\d+)\(u\d+\):\n(        .*\n)*        if (.*\n)*?.*aj\.grad\(\1\)",
}  # fmt: skip


SNIPPETS = {
    "objects": (snippet, OBJECTS), "containers": (snippet, CONTAINERS), "closures": (snippet, CLOSURES), "exits": (snippet, EXITS),
    "tapes": (by_tapes, TAPES), "maps": (mapped, MAPS),
}  # fmt: skip


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_every_construct_is_drawn(name: str) -> None:
    """Guards, and changes of the programs that the reference accepts, can silently exclude all programs of a kind."""
    _, programs = some_programs()
    assert sum(bool(re.search(CONSTRUCTS[name], program.source())) for program in programs) >= 1


@pytest.mark.parametrize("name", SNIPPETS)
def test_every_snippet_is_drawn(name: str) -> None:
    make, snippets = SNIPPETS[name]
    for piece in pieces(snippets):
        drawn: list[Node | None] = []

        def only(d: Draw, piece: str = piece, drawn: list[Node | None] = drawn) -> Node | None:
            drawn.append(make(d, piece))
            return drawn[-1]

        programs = (make_program(seed, [(3, only), (1, smooth)]) for seed in range(20))
        assert any(node in drawn for program in programs for node in program.body), piece


@cache
def some_programs() -> tuple[Counter[str], list[Program]]:
    """A few hundred programs, and how often each rule gave a statement for them."""
    used = Counter[str]()
    rules = [(weight, counted(make, used)) for weight, make in RULES]
    return used, [make_program(seed, rules) for seed in range(300)]


def counted(make: Callable[[Draw], Node | None], used: Counter[str]) -> Callable[[Draw], Node | None]:
    def drawn(d: Draw) -> Node | None:
        node = make(d)
        used[make.__name__] += node is not None
        return node

    return drawn


def test_every_pass_is_off_in_turn() -> None:
    assert len(OPTIONAL) > 10
    assert not NEEDED & set(OPTIONAL)


def test_a_pass_that_changes_the_program_is_off_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most programs are the same without most passes."""
    off: list[str] = []
    without = Stages.without
    monkeypatch.setattr(Stages, "without", lambda stages, name: off.append(name) or without(stages, name))
    idle = OPTIONAL.index("fuse_attention")  # nothing for it in this program
    for turn in range(4):
        check(PROGRAM.without(seed=turn * len(OPTIONAL) + idle))
    assert off[0] == "fuse_attention"
    assert off[1] != "fuse_attention"
    assert off[2:] == ["fuse_attention"] * 3


def test_no_dtype_depends_on_the_larger_of_two_numbers() -> None:
    """NumPy's `max(np.float32(0), 1.0)` is a Python number, which adapts to other dtypes; compiled, it is float32 always."""
    _, programs = some_programs()
    lines = [line for program in programs for line in program.source().splitlines() if re.search(r"[= ](max|min)\((np|[-\d])", line)]
    assert lines
    assert all(re.search(r"= (\w+) \* (max|min)\(.*np\.sum\(\1\)", line) for line in lines)


def test_long_nested_maps_are_not_drawn() -> None:
    def nested(d: Draw) -> Node:
        return d.assign("aj.vmap(lambda u: np.sum(aj.vmap(lambda v: v * u)(np.ones(40))))(np.ones(40)) + np.sum(x0)")

    def short(d: Draw) -> Node:
        return d.assign("aj.vmap(lambda u: np.sum(aj.vmap(lambda v: v * u)(np.ones(4))))(np.ones(40)) + np.sum(x0)")

    source = make_program(0, [(9, nested), (1, short)]).source()
    assert "np.ones(4)" in source
    assert "(np.ones(40))))(np.ones(40))" not in source


PROGRAM = Program(
    4, {"x0": np.linspace(-1.0, 1.0, 4), "x1": np.arange(3)}, {},
    (
        line("v1 = np.cos(x0) + 1"), line("v2 = x1 * 2"),
        Node("", (), (("for k in aj.range(2):", (line("v1 = np.tanh(v1)"), line("v3 = v1 * 2"))),)),
    ),
    ("v1", "v2"), ("v1",),
)  # fmt: skip


def test_a_wrong_kernel_is_found_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    check(PROGRAM)
    monkeypatch.setattr(Tanh, "scalar", lambda self, emit, x: emit.call("atan", x))
    with pytest.raises(Mismatch) as caught:
        check(PROGRAM)
    assert caught.value.kind == "compiled value"
    small = shrunk(PROGRAM, caught.value.kind)
    assert [node.text for node in small.body] == ["v1 = np.tanh(v1)"]
    assert small.outputs == ("v1",)


def test_a_smaller_program_that_does_not_end_is_given_up() -> None:
    """Removing lines also removes the one that ends a loop."""
    endless = Node("k = 0", (), (("while k < 3:", (line("v1 = np.cos(v1)"),)),))
    assert not fails(PROGRAM.without(body=(line("v1 = np.cos(x0)"), line("v2 = x1 * 2"), endless)), "compiled value", seconds=0.5)


def test_a_failure_prints_the_command_that_repeats_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tanh, "scalar", lambda self, emit, x: emit.call("atan", x))
    with pytest.raises(pytest.fail.Exception) as caught:
        run_programs(FIRST, 1, lambda seed: PROGRAM, "ADJIT_PROGRAMS=1 pytest")
    text = str(caught.value)
    assert text.startswith(f"ADJIT_PROGRAMS_SEED={FIRST} ADJIT_PROGRAMS=1 pytest\n# seed 4\n")
    assert "v1 = np.tanh(v1)" in text


def test_a_wrong_derivative_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tanh, "derivative", lambda self, i, y, x: 1.0 - y)
    with pytest.raises(Mismatch) as caught:
        check(PROGRAM)
    assert caught.value.kind == "differences"


def test_a_wrong_pass_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(func: Func) -> Func:
        stmts = [s.replace(op=Sub()) if isinstance(s.op, Add) else s for s in func.stmts]
        return func.replace(block=Block(func.params, stmts, func.results))

    monkeypatch.setitem(OPTIMIZE.passes, "fold", swapped)
    with pytest.raises(Mismatch, match="compiled"):
        check(PROGRAM)
