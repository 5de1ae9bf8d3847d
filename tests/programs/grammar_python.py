"""Python code that users write around arrays: classes, containers, closures, generators, signatures, exceptions and jumps."""

from __future__ import annotations

from tests.programs.draw import Draw, Rule
from tests.programs.grammar_flow import MAX_DEPTH, condition
from tests.programs.program import GUARD, Node
from tests.programs.snippets import CLOSURES, CONTAINERS, EXITS, OBJECTS


def snippet(d: Draw, snippets: str) -> Node | None:
    """One of the snippets, with guards against conditions that depend on rounding."""
    x, test = d.array("f"), condition(d)
    if x is None or test is None or d.depth >= MAX_DEPTH:
        return None
    c = d.number()
    given = {"x": x, "y": d.partner(x, "f"), "test": GUARD.sub("", test), "n": str(d.random.randint(1, 4)), "num": str(c)}
    text = filled(d.choice(pieces(snippets)), given | new_names(d))
    halves = [f"apart(np.sum({x}) * {0.5**k}, {c})" for k in range(5)]
    return Node(text, (*GUARD.findall(test), *halves, f"apart(np.sum({x}))"))


def pieces(snippets: str) -> list[str]:
    return snippets.strip().split("\n\n")


def new_names(d: Draw) -> dict[str, str]:
    return {**{name: d.fresh("t") for name in "abc"}, "g": d.fresh("g"), "k": d.fresh("k"), "out": d.fresh()}


def filled(text: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        text = text.replace("{" + name + "}", value)
    return text


def with_objects(d: Draw) -> Node | None:
    """Attributes that branches and loops change, methods, properties, dataclasses, named tuples, slots and context managers."""
    return snippet(d, OBJECTS)


def with_containers(d: Draw) -> Node | None:
    """Nested lists, tuples and dicts: unpacked, exchanged, iterated over, changed by branches and loops."""
    return snippet(d, CONTAINERS)


def with_closures(d: Draw) -> Node | None:
    """Functions: with state, generators, recursion, defaults, keywords and starred arguments."""
    return snippet(d, CLOSURES)


def with_exits(d: Draw) -> Node | None:
    """`else` of loops, `try` and `finally`, `match`, `with`, chained conditions and loops in loops that are left."""
    return snippet(d, EXITS)


RULES: list[Rule] = [(3, with_objects), (3, with_containers), (3, with_closures), (3, with_exits)]
