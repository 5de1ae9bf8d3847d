"""The text of a function with repeated stretches left out: the layers of a network, the steps of an unrolled loop.

A stretch of statements is repeated if the following ones are the same ops on operands of the same types. The first one is printed; a
comment says how many follow.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from .attributes import attributes_text
from .func import Func, Stmt
from .printer import folded, print_lines
from .records import NamedTuple

SHORTEST = 4  # statements of a stretch that is worth leaving out


class Repeat(NamedTuple):
    """`times` stretches of `length` statements, the first of which starts at `start`."""

    start: int
    length: int
    times: int

    @property
    def hidden(self) -> int:
        return self.length * (self.times - 1)


def outline(func: Func) -> str:
    """The text of a function, with each repeated stretch of its statements printed once. It is for reading: it is not parsed again."""
    lines, starts = print_lines(func)
    stmts = func.block.stmts
    begins = [starts[id(stmt)] for stmt in stmts]
    ends = [*begins[1:], len(lines) - 2]  # the last two are `return` and the brace
    out, at = lines[: begins[0] if begins else len(lines) - 2], 0
    for repeat in repeats([shape_of(stmt) for stmt in stmts]):
        shown = repeat.start + repeat.length
        last = repeat.start + repeat.length * repeat.times
        out += lines[begins[at] : ends[shown - 1]]
        count = f"{repeat.times - 1} more time{'s' if repeat.times > 2 else ''}"
        out.append(f"  # {count} the same {repeat.length} statements on other values, up to {name_of(lines, begins[last - 1])}")
        at = last
    out += lines[begins[at] : ends[-1]] if at < len(stmts) else []
    return "\n".join(map(folded, [*out, *lines[-2:]])) + "\n"


def name_of(lines: Sequence[str], at: int) -> str:
    """The names that a statement gives its results."""
    return lines[at].strip().partition(":")[0]


def shape_of(stmt: Stmt) -> Hashable:
    """The properties that a statement shares with those of another layer: its op, and the types of its operands and results."""
    types = [x.type for x in (*stmt.args, *stmt.results)]
    inner = tuple(shape_of(s) for block in stmt.blocks for s in block.stmts)
    return stmt.op.name, attributes_text(stmt.op, [r.type for r in stmt.results]), tuple(map(str, types)), stmt.phase, inner


def repeats(shapes: Sequence[Hashable]) -> Iterator[Repeat]:
    """Repeated stretches, in order; of those that start at one statement, the one that leaves out most."""
    numbers: dict[Hashable, int] = {}
    code = [numbers.setdefault(shape, len(numbers)) for shape in shapes]
    places: dict[int, list[int]] = {}
    for k, number in enumerate(code):
        places.setdefault(number, []).append(k)
    at = 0
    while at < len(code):
        found = best(code, at, [k - at for k in places[code[at]] if k >= at + SHORTEST])
        if found is None:
            at += 1
            continue
        yield found
        at = found.start + found.length * found.times


def best(code: Sequence[int], at: int, lengths: Sequence[int]) -> Repeat | None:
    out: Repeat | None = None
    for length in lengths:
        if 2 * length > len(code) - at:
            break
        first = code[at : at + length]
        times = 1
        while code[at + times * length : at + (times + 1) * length] == first:
            times += 1
        if times > 1 and (out is None or length * (times - 1) > out.hidden):
            out = Repeat(at, length, times)
    return out
