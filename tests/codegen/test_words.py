"""Rules about sizes make the same decisions for sizes known at compile time and sizes known only at run time."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from adjit.codegen.llvm import toolchain as llvm
from adjit.codegen.llvm.lanes import Text
from adjit.codegen.llvm.target import current
from adjit.codegen.llvm.words import Word, branch, chosen, decided, greatest, least, over, spelled
from adjit.codegen.loops import cuts
from adjit.codegen.products import cutting

F32 = np.dtype("f4")
VECTOR_BYTES = 32
RULES: dict[str, Callable[..., object]] = {
    "arithmetic": lambda m, n: (3 + m * 5) // over(n, 4) + 100 // n - (n - n),
    "extremes": lambda m, n: least(7, m) + greatest(9, n) + least(m, n),
    "choices": lambda m, n: chosen(m <= n, m, n) + chosen(m < 12, n, 5),
    "conditions": lambda m, n: chosen((m <= 30) & (n < 70) | (n <= 9), m, n) + chosen((m <= n) & True | False, m, 1),
    "decisions": lambda m, n: (
        decided(m <= n, lambda: n // m, lambda: m // n) + decided(m < 12, lambda: decided(n < 5, lambda: m, lambda: 7), lambda: n)
    ),
    "rows of one thread": lambda m, n: cutting.block_rows(m, 1, current()),
    "rows of two threads": lambda m, n: cutting.block_rows(m, 2, current()),
    "rows of seven threads": lambda m, n: cutting.block_rows(m, 7, current()),
    "groups": lambda m, n: cutting.column_groups(m, n, cutting.block_rows(m, 4, current()), 4, F32, VECTOR_BYTES),
    "groups of one thread": lambda m, n: cutting.column_groups(m, n, cutting.block_rows(m, 1, current()), 1, F32, VECTOR_BYTES),
    "parts of rows": lambda m, n: sum(k * each for k, each in enumerate(cuts.counts(m, 12), 1)),
    "parts of few rows": lambda m, n: sum(k * each for k, each in enumerate(cuts.counts(n, 6), 1)),
    "tiles": lambda m, n: cutting.span_tiles(n, F32, VECTOR_BYTES),
}


@cache
def compiled(name: str) -> tuple[llvm.Library, Callable[[int, int], int]]:
    text = Text(current())
    result = RULES[name](Word(text, "%m"), Word(text, "%n"))
    assert isinstance(result, int | Word)
    body = "\n".join([*text.lines, f"ret i64 {spelled(result)}"])
    declares = "\n".join(sorted(text.declares))
    code = llvm.assemble(f"{declares}\ndefine i64 @rule(i64 %m, i64 %n) {{\nentry:\n{body}\n}}\n", current())
    library = llvm.Library([code], ["rule"], {})
    return library, ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(library.address["rule"])


@pytest.mark.parametrize("name", RULES)
def test_words_decide_like_numbers(name: str) -> None:
    _, rule = compiled(name)
    rng = np.random.default_rng(0)
    sizes = [*range(1, 40), *rng.integers(40, 5000, 200).tolist()]
    for m in sizes:
        n = int(rng.choice(sizes))
        assert rule(m, n) == RULES[name](m, n), (m, n)


def test_known_conditions_emit_nothing() -> None:
    text = Text(current())
    truth = Word(text, "%m") <= 3
    before = list(text.lines)
    assert [truth | True, True | truth, truth & False, False & truth] == [True, True, False, False]
    assert [truth & True, False | truth] == [truth, truth]
    called: list[str] = []
    branch(True, lambda: called.append("then"), lambda: called.append("otherwise"))
    branch(False, lambda: called.append("then"), lambda: called.append("otherwise"))
    assert called == ["then", "otherwise"]
    assert text.lines == before


def test_a_word_does_not_decide_what_is_compiled() -> None:
    text = Text(current())
    with pytest.raises(TypeError, match="only at run time"):
        assert Word(text, "%m") < 3
