"""Operators, items, attributes and iteration of users' objects: a traced value may decide in their special methods and properties."""

# mypy: ignore-errors
# ruff: noqa: SIM210, RET504, RUF005, RUF015, E501 - programs that decide where they need not
from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit.tracer.autograph.convert import to_code


class Clamp:
    """A descriptor."""

    def __get__(self, instance, owner):
        if instance is None:
            return self
        return instance.inner if instance.inner > 0 else 0.5


class Number:
    """Every method decides by a value."""

    clamped = Clamp()

    def __init__(self, v):
        self.v = self.inner = v

    def __add__(self, o):
        if not isinstance(o, Number | float | int):
            return NotImplemented
        w = o.v if isinstance(o, Number) else o
        return Number(self.v + w if w > 0 else self.v)

    def __radd__(self, o):
        w = o.v if isinstance(o, Plain) else o
        return Number(w + self.v if self.v > 0 else w)

    def __mul__(self, o):
        if self.v > 0:
            r = self.v * o.v
        else:
            r = -o.v
        return Number(r)

    def __matmul__(self, o):
        return self.v * 3 if self.v > 0 else o.v

    def __pow__(self, k):
        out = 1.0
        for _ in range(k):
            out = out * self.v
        return Number(out)

    def __neg__(self):
        return Number(-self.v if self.v > 1 else self.v)

    def __invert__(self):
        return Number(1.0 if self.v > 0 else 0.0)

    def __abs__(self):
        return Number(self.v if self.v > 0 else -self.v)

    def __lt__(self, o):
        return True if self.v < o.v else False

    def __eq__(self, o):
        return True if abs(self.v - o.v) < 0.6 else False

    __hash__ = None

    def __bool__(self):
        return True if self.v > 0.5 else False

    def __contains__(self, k):
        return True if self.v > k else False

    def __getitem__(self, k):
        return self.v * k if self.v > 0 else self.v

    def __setitem__(self, k, v):
        if v > self.v:
            self.v = v + k

    def __iadd__(self, k):
        if self.v > 0:
            self.v = self.v + k
        return self

    def __iter__(self):
        if self.v > 0:
            first = self.v
        else:
            first = 2.0
        return iter([first, self.v])

    def __enter__(self):
        if self.v > 0:
            self.v = self.v * 2
        return self

    def __exit__(self, *error):
        self.v = self.v + 1 if self.v > 3 else self.v

    def __call__(self, k):
        return self.v * k if self.v > 0 else k

    def __getattr__(self, name):
        if name == "missing":
            return self.v if self.v > 0 else 7.0
        raise AttributeError(name)

    @property
    def magnitude(self):
        return self.v if self.v > 0 else -self.v

    @property
    def unknown(self):
        raise AttributeError("unknown")

    @functools.cached_property
    def kept(self):
        return self.v + 1 if self.v > 0 else 0.0


class Child(Number):
    def __add__(self, o):
        return Number(100.0 if self.v > o.v else 200.0)

    __radd__ = __add__


class Plain:
    """Knows no other class."""

    def __init__(self, v):
        self.v = v

    def __add__(self, o):
        return NotImplemented

    def __gt__(self, o):
        return True if self.v > o.v else False


def updated(a, b):
    a += b.v
    return a.v


def item_set(a, b):
    a[1.0] = b.v
    return a.v


def managed(a, b):
    with a as c:
        inside = c.v + b.v
    return inside, a.v


def looped(a, b):
    total = 0.0
    for v in a:
        total += v * b.v
    return total


def chosen(a, b):
    if a:
        return a.v
    return b.v if not b else 5.0


def twice(a, b):
    return a.kept, a.kept, vars(a)["kept"]


PROGRAMS = {
    "+": lambda a, b: (a + b).v, "+ a number": lambda a, b: (a + 1.5).v, "a number +": lambda a, b: (1.5 + a).v, "*": lambda a, b: (a * b).v,
    "several": lambda a, b: (a * b + a * a).v, "@": lambda a, b: a @ b, "**": lambda a, b: (a**3).v, "-": lambda a, b: (-a).v,
    "~": lambda a, b: (~a).v, "abs": lambda a, b: abs(a).v, "sum": lambda a, b: sum([a, b]).v, "sum from": lambda a, b: sum([a, b], a).v,
    "<": lambda a, b: a < b, ">": lambda a, b: a > b, "==": lambda a, b: a == b, "!=": lambda a, b: a != b,
    "> of the other": lambda a, b: operator.and_(Plain(a.v) > Plain(b.v), Plain(a.v) < Plain(b.v)),
    "in": lambda a, b: 0.7 in a, "not in": lambda a, b: 0.7 not in a, "[]": lambda a, b: a[2], "[]=": item_set, "+=": updated,
    "subclass first": lambda a, b: (a + Child(b.v)).v, "subclass": lambda a, b: (Child(a.v) + b).v,
    "refused": lambda a, b: (Plain(2.0) + a).v, "with": managed, "for": looped, "bool": chosen, "call": lambda a, b: a(b.v),
    "__getattr__": lambda a, b: a.missing, "property": lambda a, b: a.magnitude, "cached_property": twice, "descriptor": lambda a, b: a.clamped,
    "operator.add": lambda a, b: functools.reduce(lambda p, q: p + q, [a, b, a]).v, "map": lambda a, b: list(map(abs, [a, b]))[0].v,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_python(name: str) -> None:
    program = PROGRAMS[name]

    def whole(p: Any, q: Any) -> Any:
        return program(Number(p), Number(q))

    compiled = aj.function(whole)
    for p, q in ((1.5, 2.0), (-1.0, 0.25), (2.0, 1.5), (0.25, -3.0)):
        np.testing.assert_allclose(np.array(aj.tree_leaves(compiled(p, q))), np.array(aj.tree_leaves(whole(p, q))))
    assert compiled.trace_count == 1


def test_errors_of_operators_are_pythons() -> None:
    def whole(p: Any) -> Any:
        return Plain(p) + "text"

    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Plain' and 'str'"):
        aj.function(whole)(1.0)
    with pytest.raises(AttributeError, match="unknown"):
        aj.function(lambda p: Number(p).unknown)(1.0)


def test_sequences_are_joined_after_the_other_operand_was_asked() -> None:
    class Tail:
        def __radd__(self, front):
            return [*front, 1.0] if front[0] > 0 else [*front, 2.0]

    for p in (1.0, -1.0):
        assert [float(v) for v in aj.function(lambda p: [p] + Tail())(p)] == ([p] + Tail())


def test_the_text_of_a_conversion_shows_operators() -> None:
    def f(a, b):
        with a.lock:
            c = -a.rate * b[0] if a < b else ~a
        return c

    assert to_code(f) == (
        "def f(a, b):\n    with a.lock:\n        c = ag__.if_exp((a < b), (lambda : ((- a.rate) * ag__.get_item(b, 0))), (lambda : (~ a)))\n    return c\n"
    )


def test_reductions_take_builtins() -> None:
    f = aj.function(lambda a, b: (functools.reduce(max, [a, b, 1.0]), functools.reduce(operator.mul, [a, b]), list(map(max, [a], [b]))))
    for a, b in ((2.0, 3.0), (-1.0, 0.5)):
        out = f(a, b)
        assert [float(out[0]), float(out[1]), float(out[2][0])] == [max(a, b, 1.0), a * b, max(a, b)]
