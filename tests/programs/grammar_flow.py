"""Branches and loops that depend on the data, around array code: with jumps, lists, nested functions and assignments to variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.programs.draw import Draw, Rule
from tests.programs.program import GUARD, OPEN, STATE, TRACED, Node, line
from tests.programs.reference import Cell

MAX_DEPTH = 2


def condition(d: Draw, joined: bool = True) -> str | None:
    """A condition on scalars, with the guard that rounding does not decide it."""
    x = d.array("fiub")
    if x is None:
        return None
    kind, c = d.dtype(x).kind, d.number()
    if kind == "b":
        text = d.choice([f"np.any({x})", f"np.all({x})", f"np.sum({x}) > 1"])
    elif d.shape(x) == () and d.chance(0.7):
        text = f"«apart({x}, {c})»{x} > {c}" if kind == "f" else f"{x} > {round(c)}"
    else:
        scalar = d.choice([f"np.sum({x})", f"np.sum({x} * {x})", f"np.sum(np.sin({x} * 1.0))", f"np.max(np.abs({x}), initial=0)"])
        text = f"«apart({scalar}, {c})»{scalar} {d.choice(['>', '<', '>=', '<='])} {c}"
    if joined and d.chance(0.25):
        other = condition(d, joined=False)
        if other is not None:
            return d.choice([f"{text} and {other}", f"{text} or {other}", f"not ({text})", f"{text} and not ({other})"])
    return str(text)


def target(d: Draw) -> str | None:
    """A value that a block may change: an array."""
    return d.pick(lambda v: isinstance(v, np.ndarray | np.generic))


def update(d: Draw, name: str, since: int) -> Node:
    """Assign a value of the same type, computed from values of the block."""
    kind, code = d.dtype(name).kind, d.code(name)
    if kind == "b":
        return line(d.choice([f"{name} = ~{name}", f"{name} = {name} & True", f"{name} = np.logical_not({name})"]))
    if kind in "iu":
        return line(d.choice([f"{name} = {name} // 2 + 1", f"{name} = {name} ^ 1", f"{name} = {name} % 3"]))
    made = [n for n in d.order[since:] if isinstance(d.env[n], np.ndarray | np.generic)]
    if not made:
        return line(f"{name} = {name} * {d.number(0.3, 0.9)}")
    last = made[-1] if d.chance(0.7) else d.choice(made)
    if d.shape(last) == d.shape(name) and d.dtype(last) == d.dtype(name) and d.chance(0.7):
        return line(d.choice([f"{name} = {name} * 0.5 + {last} * 0.25", f"{name} = np.tanh({last})", f"{name} = {last}"]))
    return line(f"{name} = np.tanh({name} * 0.7 + np.sum({last}) * 0.1).astype('{code}')")


def block(
    d: Draw, targets: Sequence[str], extra: dict[str, Any] | None = None, finish: Callable[[int], Node | None] | None = None, most: int = 3
) -> tuple[Node, ...] | None:
    """Statements in a nested scope (with `extra` names), which end by changing the targets; `finish` adds a last one."""
    env, order = d.env, list(d.order)
    d.env, d.depth = {**env, **(extra or {})}, d.depth + 1
    d.order += [name for name in extra or {} if name not in d.order]
    since = len(d.order)
    try:
        nodes = [node for _ in range(d.random.randint(1, most)) if (node := d.statement(attempts=8)) is not None]
        for name in targets:
            node = update(d, name, since)
            if not d.keep(node):
                node = line(f"{name} = {name} * 1")
            nodes.append(node)
        last = finish(since) if finish is not None else None
        if finish is not None and last is None:
            return None
        return (*nodes, *([last] if last is not None else []))
    finally:
        d.env, d.order, d.depth = env, order, d.depth - 1


def branch(d: Draw) -> Node | None:
    test, name = condition(d), target(d)
    if test is None or name is None or d.depth >= MAX_DEPTH:
        return None
    targets = [name]
    parts = [(f"if {test}:", block(d, targets))]
    if d.chance(0.3) and (other := condition(d)) is not None:
        parts.append((f"elif {other}:", block(d, targets)))
    if d.chance(0.6):
        parts.append(("else:", block(d, targets)))
    if d.chance(0.2):
        new = d.fresh()
        ends = (f"{new} = np.sin({name} * 1.0)", f"{new} = np.cos({name} * 1.0)")
        return Node("", (), ((f"if {test}:", (line(ends[0]),)), ("else:", (line(ends[1]),))))
    return Node("", (), tuple((header, nodes) for header, nodes in parts if nodes is not None))


def jump(d: Draw) -> Node | None:
    test = condition(d)
    if test is None:
        return None
    return Node("", (), ((f"if {test}:", (line(d.choice(["break", "continue"])),)),))


def in_loop(d: Draw, targets: Sequence[str], extra: dict[str, Any] | None) -> tuple[Node, ...] | None:
    nodes = block(d, targets, extra)
    if nodes is None or not d.chance(0.3):
        return nodes
    leave = jump(d)
    if leave is None:
        return nodes
    at = d.random.randint(0, len(nodes))
    return (*nodes[:at], leave, *nodes[at:])


def heads(d: Draw) -> tuple[str, dict[str, Any]] | None:
    """The header of a `for`, and the values of its names in the first iteration."""
    k, row = d.fresh("k"), d.fresh("u")
    x = d.array("fiub", least=1)
    count = d.pick(lambda v: type(v) is int and v > 0)
    options: list[tuple[str, dict[str, Any]]] = [
        (f"for {k} in aj.range({d.random.randint(1, 4)}):", {k: 0}),
        (f"for {k} in range({d.random.randint(1, 3)}):", {k: 0}),
        (f"for {k} in aj.range(2, 8, 3):", {k: 2}),
        (f"for {k} in range(3, 0, -1):", {k: 3}),
    ]
    if count is not None:
        options += [(f"for {k} in range({count}):", {k: 0})] * 3
    if x is not None and 0 < d.shape(x)[0] <= 20:
        first, last = np.asarray(d.env[x][0]), np.asarray(d.env[x][-1])
        options += [(f"for {row} in {x}:", {row: first}), (f"for {k}, {row} in enumerate({x}):", {k: 0, row: first}),
                    (f"for {row} in {x}[::-1]:", {row: last})]  # fmt: skip
    return d.choice(options)  # type: ignore[no-any-return]


def counted(d: Draw) -> Node | None:
    head, name = heads(d), target(d)
    if head is None or name is None or d.depth >= MAX_DEPTH:
        return None
    nodes = in_loop(d, [name], head[1])
    return None if nodes is None else Node("", (), ((head[0], nodes),))


def repeated(d: Draw) -> Node | None:
    """A `while` that the data end, or the number of its iterations."""
    name = d.array("f")
    if name is None or d.depth >= MAX_DEPTH:
        return None
    k, c = d.fresh("k"), d.number(0.2, 1.5)
    scalar = d.choice([f"np.sum({name} * {name})", f"np.max(np.abs({name}), initial=0)"])
    tests = [f"{k} < {d.random.randint(1, 5)} and «apart({scalar}, {c})»{scalar} > {c}", f"{k} < {d.random.randint(0, 4)}"]
    nodes = in_loop(d, [name], {k: 0})
    if nodes is None:
        return None
    return Node(f"{k} = 0", (), ((f"while {d.choice(tests)}:", (line(f"{k} = {k} + 1"), line(f"{name} = {name} * 0.8"), *nodes)),))


def summed(d: Draw) -> Node | None:
    """A sum that begins as a Python number."""
    head = heads(d)
    if head is None or d.depth >= MAX_DEPTH:
        return None
    total = d.fresh()

    def add(since: int) -> Node | None:
        made = [n for n in d.order[since:] if isinstance(d.env[n], np.ndarray | np.generic) and d.dtype(n).kind == "f"]
        return line(f"{total} = {total} * 0.5 + np.sum({d.choice(made)})") if made else None

    nodes = block(d, [], head[1], add)
    return None if nodes is None else Node(f"{total} = 0.0", (), ((head[0], nodes),))


def listed(d: Draw) -> Node | None:
    """A list that a loop appends to."""
    head = heads(d)
    if head is None or d.depth >= MAX_DEPTH or OPEN.search(head[0]):
        return None
    rows, out, item = d.fresh("l"), d.fresh(), ""

    def append(since: int) -> Node | None:
        nonlocal item
        made = [n for n in d.order[since - len(head[1]) :] if isinstance(d.env[n], np.ndarray | np.generic)]
        item = d.choice(made) if made else ""
        return line(f"{rows}.append({item})") if made else None

    nodes = block(d, [], head[1], append, most=2)
    if nodes is None:
        return None
    forms = [f"np.stack({rows})", f"np.stack({rows})", f"{rows}[0]", f"{rows}[-1]", f"np.array({rows})"]
    end = d.choice(forms)
    ends = line(f"{out} = {end}", flags=[TRACED] if "np.array" in end else [])
    if d.chance(0.3) and (test := condition(d)) is not None and "range" in head[0]:
        first = line(f"{rows} = [np.zeros_like({d.choice(d.order)} * 1.0)]")
        kept = Node("", (), ((f"if {test}:", (line(f"{rows}.append({rows}[0] + 1.0)"),)),))
        ends = line(f"{out} = aj.stack({rows}, fill=0.5, length=12)")
        return Node("", (), (("", (first, Node("", (), ((head[0], (kept,)),)), ends)),))
    return Node("", (), (("", (line(f"{rows} = []"), Node("", (), ((head[0], nodes),)), ends)),))


def takes_over(d: Draw, nodes: Sequence[Node]) -> bool:
    """Whether a function of these statements assigns names of the program: they would be local to it, and unbound where it reads them."""
    return any(node.assigns() & set(d.order) for node in nodes)


def nested(d: Draw) -> Node | None:
    """A function inside the program, called once or twice."""
    x = d.array("f")
    if x is None or d.depth >= MAX_DEPTH:
        return None
    g, u, w = d.fresh("g"), d.fresh("u"), d.fresh("u")

    def leave(since: int) -> Node | None:
        made = [n for n in d.order[since - 2 :] if isinstance(d.env[n], np.ndarray | np.generic)]
        return line(f"return {d.choice(made)}") if made else None

    nodes = block(d, [], {u: d.env[x], w: 0.5}, leave)
    if nodes is None or takes_over(d, nodes):
        return None
    call = d.choice([f"{g}({x})", f"{g}({x}) + {g}({x} * 0.5, 2.0)", f"{g}({w}=0.25, {u}={x})", f"(lambda x: {g}(x * 0.5))({x})"])
    return Node("", (), (("", (Node("", (), ((f"def {g}({u}, {w}=0.5):", nodes),)), line(f"{d.fresh()} = {call}"))),))


def assigned(d: Draw) -> Node | None:
    """Variables: read and assigned."""
    cells = [name for name, value in d.env.items() if isinstance(value, Cell)]
    if not cells:
        return None
    w = d.choice(cells)
    if d.chance(0.4):
        return line(f"{d.fresh()} = {w} * {d.number()} + {d.partner(d.order[0], 'f')}", flags=[STATE])
    x = d.array("f") or "1.0"
    change = d.choice(
        [
            f"{w}.assign({w} * 0.5)",
            f"{w}.assign_add(np.tanh({w}) * 0.1 + np.sum({x}) * 0.01)",
            f"{w}.assign_sub({w} * np.sin(np.sum({x} * 1.0)))",
        ]
    )
    return line(f"{change}\n{d.fresh()} = np.sum({w} * 1.0)", flags=[STATE])


def packed(d: Draw) -> Node | None:
    """Values in tuples and dicts, exchanged and changed by branches and loops."""
    x, test = d.array("f"), condition(d)
    if x is None or test is None or d.depth >= MAX_DEPTH:
        return None
    y, t, a, b, k, out = d.partner(x, "f"), d.fresh("t"), d.fresh("t"), d.fresh("t"), d.fresh("k"), d.fresh()
    alike = d.shape(x) == d.shape(y) and d.dtype(x) == d.dtype(y) and hasattr(d.env[y], "dtype")
    pair, swap = line(f"{a}, {b} = {x} * 0.5, {y}"), line(f"{a}, {b} = {b} - 1.0, {a}" if alike else f"{a}, {b} = {a} - 1.0, {b} * 0.5")
    ends = line(f"{out} = {a} + np.sum({b})")
    table, change = line(f"{t} = {{'a': {x}, 'n': 1.5}}"), line(f"{t}['a'] = np.tanh({t}['a'] * {t}['n'])")
    both = line(f"{out} = {t}['a'] + {t}['n']")
    headers = [f"if {test}:", f"for {k} in aj.range({d.random.randint(1, 3)}):", f"for {k} in range({d.random.randint(1, 3)}):"]
    zero = f"np.sum({t}[0] * 0, dtype={y}.dtype)" if hasattr(d.env[y], "dtype") else "0.0"
    rows = (
        line(f"{t} = [{x}, {y}]"),
        line(f"{t}[-1] = {t}[-1] * 0.5 + {zero}"),
        line(f"{out} = {t}[0] * {t}[1]"),
    )
    before, inside, after = d.choice([(pair, swap, ends), (table, change, both), rows])
    return Node("", (), (("", (before, Node("", (), ((d.choice(headers), (inside,)),)), after)),))


def pythonic(d: Draw) -> Node | None:
    """Conditional expressions, comprehensions, chained comparisons and built-in functions on traced values."""
    x, test = d.array("f"), condition(d)
    if x is None or test is None:
        return None
    c, scalar = d.number(), f"np.sum({x})"
    scaled = f"{x} * "  # by itself, max(float32, Python's number) is weakly typed or not, depending on the values
    chained = f"«apart({scalar}, {c})»«apart({scalar}, {c + 1.0})»{c} < {scalar} < {c + 1.0}"
    forms = [f"np.sin({x}) if {test} else np.cos({x})", f"{x} * 2 if {chained} else {x}", f"{scaled}max({scalar}, {c})",
             f"{scaled}min({c}, {scalar})", f"abs({scalar})",
             f"(1.5 if {test} else 2) * {x}", f"{scalar} * ({test})"]  # fmt: skip
    if d.shape(x) and d.shape(x)[0]:
        forms += [f"np.stack([u * u for u in {x}])", f"sum([np.sum(u) * 0.5 for u in {x}])",
                  f"np.stack([u + k for k, u in enumerate({x})])",
                  f"np.stack([u * w for u, w in zip({x}, {x}[::-1])])", f"np.stack([{x}[k] for k in range(len({x}))])",
                  f"{x} * len({x})", f"np.stack(list({x}))", f"np.stack([u for u in reversed({x})])"]  # fmt: skip
    text = d.choice(forms)
    guards = [f"apart({scalar}, {c})", f"apart({scalar}, {c + 1.0})", f"apart({scalar})", *GUARD.findall(text)]
    return d.assign(GUARD.sub("", text), *guards)


RULES: list[Rule] = [
    (2, pythonic),
    (3, branch),
    (3, counted),
    (2.5, repeated),
    (2, summed),
    (2.5, listed),
    (2, nested),
    (4, assigned),
    (1.5, packed),
]
