"""Derivatives and batches inside programs: vmap over grad over while, jvp, and the functional forms of control flow."""

from __future__ import annotations

import numpy as np

from tests.programs.draw import Draw, Rule
from tests.programs.grammar_flow import block, takes_over
from tests.programs.program import STATE, Node, line

SCALARS = ["np.sum(np.sin({u}))", "np.sum({u} * {u}) * 0.5", "np.sum(np.tanh({u}) ** 2)", "np.mean({u} ** 3) * 0.2",
           "np.sum(np.exp(-{u} * {u}))",
           "np.prod(np.tanh({u}) + 1.5)", "np.sum(np.cumsum({u}) * {u}) * 0.1", "np.sum({u}[::-1] * {u})",
           "np.sum(np.log1p({u} * {u}))"]  # fmt: skip
STEPS = [
    "{u} = {u} * 0.6",
    "{u} = np.tanh({u} * 0.9)",
    "{u} = {u} - 0.3 * np.sin({u})",
    "{u} = {u} * 0.4 + np.sum({u}) * 0.1",
    "{u} = 0.5 * ({u} + np.cos({u}))",
]
MAPS = [
    "np.sin({u})",
    "{u} * {u}",
    "np.cumsum({u})",
    "np.tanh({u}) * np.sum({u})",
    "{u}[::-1] * 0.5",
    "np.exp(-{u} * {u})",
    "{u} - np.mean({u})",
]


def inner(d: Draw, g: str) -> Node:
    """A scalar function of an array, mostly with a loop or branch that the data decide."""
    u, k, c = d.fresh("u"), d.fresh("k"), d.number(0.2, 1.0)
    scalar = f"np.sum({u} * {u})"
    counted = f"«apart({k} * {c}, {scalar})»{k} * {c} < {scalar}"
    step, end = d.choice(STEPS).format(u=u), line(f"return {d.choice(SCALARS).format(u=u)}")
    loops = [
        Node(f"{k} = 0", (), ((f"while {k} < 6 and «apart({scalar}, {c})»{scalar} > {c}:", (line(step), line(f"{k} = {k} + 1"))),)),
        Node("", (), ((f"if «apart({scalar}, {c})»{scalar} > {c}:", (line(step),)), ("else:", (line(f"{u} = {u} * {u}"),)))),
        Node("", (), ((f"for {k} in aj.range({d.random.randint(1, 3)}):", (line(step),)),)),
        Node(f"{k} = 0.0", (), ((f"while {k} < 9.0 and {counted}:", (line(f"{k} = {k} + 1.0"), line(step))),)),
        line(step),
    ]
    return Node("", (), ((f"def {g}({u}):", (d.choice(loops), end)),))


def transformed(d: Draw) -> Node | None:
    x = d.array("f", least=1)
    if x is None or 0 in d.shape(x):
        return None
    g, out = d.fresh("g"), d.fresh()
    function = inner(d, g)
    forms = [f"aj.grad({g})({x})", f"aj.vmap({g})({x})", f"aj.vmap(aj.grad({g}))({x})", f"aj.vmap(aj.grad({g}))({x})",
             f"aj.jvp({g}, ({x},), (np.ones_like({x}),))[1]", f"aj.jvp({g}, ({x},), (np.cos({x}),))[0]", f"aj.checkpoint({g})({x})",
             f"aj.grad(aj.checkpoint({g}))({x})", f"aj.jvp(aj.grad({g}), ({x},), (np.sin({x}),))[1]", f"aj.vmap(aj.checkpoint({g}))({x})",
             f"aj.grad(lambda u: np.sum(aj.vmap({g})(u)))({x})"]  # fmt: skip
    if len(d.shape(x)) > 1:
        forms += [
            f"aj.vmap(aj.vmap({g}))({x})",
            f"aj.vmap(lambda u: aj.jvp({g}, (u,), (u * 0.5,))[1])({x})",
            f"aj.vmap(aj.vmap(aj.grad({g})))({x})",
        ]
    return Node("", (), (("", (function, line(f"{out} = {d.choice(forms)}"))),))


def any_function(d: Draw) -> Node | None:
    """A function of any statements: mapped over rows, differentiated, or run again for its derivative."""
    x = d.array("f", least=1)
    if x is None or 0 in d.shape(x) or d.depth:
        return None
    rows = d.chance(0.6)
    g, u = d.fresh("g"), d.fresh("u")

    def leave(since: int) -> Node | None:
        made = [n for n in d.order[since:] if isinstance(d.env[n], np.ndarray | np.generic) and d.dtype(n).kind == "f"]
        return line(f"return {made[-1]}" if rows else f"return np.sum({made[-1]})") if made else None

    nodes = block(d, [], {u: np.asarray(d.env[x][0]) if rows else d.env[x]}, leave)
    if nodes is None or any(STATE in inner.flags for node in nodes for inner in node.walk()):  # vmap refuses assignments
        return None
    if takes_over(d, nodes):
        return None
    mapped = [f"aj.vmap({g})({x})", f"aj.vmap({g})({x}) * 0.5", f"aj.map({g}, {x})", f"aj.vmap(aj.grad(lambda u: np.sum({g}(u))))({x})",
              f"aj.vmap(lambda u: aj.jvp({g}, (u,), (u,))[1])({x})"]  # fmt: skip
    whole = [f"aj.grad({g})({x})", f"aj.jvp({g}, ({x},), ({x} * 0.5,))[1]", f"aj.checkpoint({g})({x})", f"aj.grad(aj.checkpoint({g}))({x})"]
    call = d.choice(mapped if rows else whole)
    return Node("", (), (("", (Node("", (), ((f"def {g}({u}):", nodes),)), line(f"{d.fresh()} = {call}"))),))


def customized(d: Draw) -> Node | None:
    """A function with a correct custom derivative."""
    x = d.array("f")
    if x is None:
        return None
    g, u, k = d.fresh("g"), d.fresh("u"), d.fresh("k")
    halved = line(f"{u} = {u} * 0.5")
    twice = Node(f"{k} = 0.0", (), ((f"while {k} < 2.0:", (halved, line(f"{k} = {k} + 1.0"))),))
    loop, factor = d.choice([(halved, 0.5), (twice, 0.25)])
    forms = [(f"np.sin({u})", f"ct * np.cos({u})"), (f"{u} * {u}", f"2 * ct * {u}"), (f"np.exp(-{u})", f"-ct * np.exp(-{u})")]
    value, pulled = d.choice(forms)
    end = line(f"return {value}, lambda ct: {pulled} * {factor}")
    function = Node("", (), ((f"@aj.custom_gradient\ndef {g}({u}):", (loop, end)),))
    call = d.choice([f"{g}({x})", f"aj.grad(lambda u: np.sum({g}(u)))({x})", f"{g}({x}) * {g}({x} * 0.5)"])
    return Node("", (), (("", (function, line(f"{d.fresh()} = {call}"))),))


def functional(d: Draw) -> Node | None:
    """`scan`, `map`, `cond`, `while_loop` and `fori_loop` with functions of one line."""
    x = d.array("f", least=1)
    if x is None:
        return None
    out, f, c = d.fresh(), d.choice(MAPS).format(u="u"), d.number(0.2, 1.0)
    code, reverse = d.code(x), d.choice([True, False])
    forms = [
        f"aj.scan(lambda c, u: (c * 0.5 + np.sum({f}) * 0.25, u * c), np.sum({x}), {x}, reverse={reverse})[{d.choice([0, 1])}]",
        f"aj.scan(lambda c, u: (np.tanh(c + u), c), {x}[0] * 1.0, {x}, reverse={reverse})[{d.choice([0, 1])}]",
        f"aj.scan(lambda c, u: (np.tanh(c + u), c), {x}[0] * 1.0, {x}, checkpoint='sqrt')[{d.choice([0, 1])}]",
        f"aj.map(lambda u: {f}, {x})" if len(d.shape(x)) > 1 else f"aj.map(lambda u: np.sin(u) * u, {x})",
        f"aj.fori_loop(0, {d.random.randint(1, 4)}, lambda i, u: np.tanh(u * 0.9 + i), {x})",
        f"aj.cond(np.sum({x}) > {c}, lambda u: np.sin(u), lambda u: u * u, {x})",
        f"aj.while_loop(lambda u: np.sum(u * u) > {c}, lambda u: (u * 0.6).astype('{code}'), {x})",
        f"aj.vmap(lambda u: aj.cond(np.sum(u) > {c}, lambda: np.sin(np.sum(u)), lambda: np.sum(u * u)))({x})",
    ]
    guards = [
        f"apart(np.sum({x}), {c})",
        f"apart(np.sum({x} * {x}) * 0.36 ** np.arange(12), {c})",
        f"apart(np.sum({x}, axis=tuple(range(1, {x}.ndim))), {c})",
    ]
    return line(f"{out} = {d.choice(forms)}", *guards)


RULES: list[Rule] = [(2, any_function), (2.5, transformed), (2, functional), (0.7, customized)]
