"""Derivatives as users write them: of structures, of higher order, by tapes, of mapped and custom functions, and inside loops."""

from __future__ import annotations

from tests.programs.draw import Draw, Rule
from tests.programs.grammar_python import filled, new_names, pieces
from tests.programs.grammar_transforms import inner
from tests.programs.program import OPAQUE, Node, line
from tests.programs.snippets_derivatives import MAPS, TAPES

SHORT = 24  # elements of an array that is differentiated twice


def derived(d: Draw, forms: list[str], most: int, least: int = 1) -> Node | None:
    """A scalar function {g} of an array, and a statement that uses it; {f} returns an array."""
    x = d.array("f", least=least)
    if x is None or not 0 < d.env[x].size <= most:
        return None
    g, out = d.fresh("g"), d.fresh()
    y = d.partner(x, "f")
    text = filled(d.choice(forms), {"x": x, "y": y, "g": g, "out": out})
    return Node("", (), (("", (inner(d, g), line(text))),))


def of_structures(d: Draw) -> Node | None:
    forms = [
        "{out} = aj.grad(lambda p: {g}(p['a']) + np.sum(p['b'][0] * p['a']))({'a': {x}, 'b': [{y}]})['a']",
        "{out} = aj.grad(lambda p: {g}(p[0]) * np.sum(p[1] * p[1]))(({x}, {x} * 0.5))[1]",
        "{out} = aj.grad(lambda u, v: {g}(u) + np.sum(u * v), argnums=(0, 1))({x}, {x} * 0.5)[1]",
        "{out} = aj.grad(lambda u, v: {g}(v) * u, argnums=1)(0.5, {x})",
        "{out} = aj.value_and_grad({g})({x})[1] + aj.value_and_grad({g})({x})[0]",
        "{out} = aj.value_and_grad(lambda u: ({g}(u), u * 0.5), has_aux=True)({x})[1]",
        "{out} = aj.value_and_grad(lambda u: ({g}(u), u * 0.5), has_aux=True)({x})[0][1] * {x}",
        "{out} = aj.vjp(lambda u: np.sin(u) * {g}(u), {x})[1]({x} * 0.5)[0]",
        "{out} = aj.vjp(lambda u, v: (u * v, {g}(u)), {x}, {x} * 0.5)[1](({x}, np.sum({x})))[1]",
        "{out} = aj.linearize(lambda u: np.tanh(u) * {g}(u), {x})[1]({x} * 0.5)",
        "{out} = aj.jvp(lambda u, v: {g}(u) * np.sum(v), ({x}, {x} * 2.0), ({x} * 0.5, np.ones_like({x})))[1]",
        "{out} = aj.jvp(lambda p: {'s': {g}(p['u']) * p['u']}, ({'u': {x}},), ({'u': {x} * 0.5},))[1]['s']",
        "{out} = aj.grad(lambda u: {g}(np.concatenate([u, u * 0.5])))({x})",
        "{out} = aj.grad(lambda u: sum([{g}(u * w) for w in (0.5, 1.0)]))({x})",
        "{out} = aj.grad(lambda u: {g}(u) + np.sum({x} * u))({x})",
        "{out} = aj.grad(lambda u: {g}(aj.checkpoint(lambda v: np.sin(v) * v)(u)))({x})",
    ]
    return derived(d, forms, 200)


def of_higher_order(d: Draw) -> Node | None:
    forms = [
        "{out} = aj.hessian({g})({x})",
        "{out} = np.sum(aj.hessian({g})({x}), axis=0)",
        "{out} = aj.hvp({g}, ({x},), ({x} * 0.5,))[0]",
        "{out} = aj.jacobian(lambda u: np.sin(u) * {g}(u))({x})",
        "{out} = aj.jacobian(lambda u: u * {g}(u), mode='forward')({x})",
        "{out} = aj.jacobian(aj.grad({g}))({x})",
        "{out} = aj.grad(lambda u: np.sum(aj.grad({g})(u) ** 2))({x})",
        "{out} = aj.grad(lambda u: np.sum(aj.jvp({g}, (u,), (u * 0.5,))[1]))({x})",
        "{out} = aj.jvp(lambda u: aj.jvp({g}, (u,), ({x},))[1], ({x},), ({x} * 0.5,))[1]",
        "{out} = aj.vmap(aj.grad(aj.grad(lambda u: np.sin(u) * u)))(np.ravel({x}))",
        "{out} = aj.vmap(aj.grad(aj.grad(aj.grad(lambda u: np.tanh(u) * u))))(np.ravel({x}))",
        "{out} = aj.grad(lambda u: np.sum(aj.vmap(aj.grad(lambda v: np.sin(v) * v))(u)))(np.ravel({x}))",
        "{out} = aj.grad(lambda u: np.sum(aj.grad(lambda v: {g}(v) * np.sum(u * v))(u)))({x})",
        "{out} = aj.grad(lambda u: np.sum(aj.checkpoint(aj.grad({g}))(u)))({x})",
        "{out} = np.trace(np.atleast_2d(aj.hessian(lambda u: {g}(u))(np.ravel({x}))))",
    ]
    return derived(d, forms, SHORT)


def by_tapes(d: Draw, snippets: str = TAPES) -> Node | None:
    """Gradient tapes: persistent, nested, with several targets and sources, around loops and inside them."""
    x = d.array("f", least=1)
    if x is None or not d.env[x].size:
        return None
    text = filled(d.choice(pieces(snippets)), {"x": x, "n": str(d.random.randint(1, 3)), **new_names(d)})
    guards = [f"apart(np.sum({x}) * 0.4 ** np.arange(8), {sign}0.3 ** 0.5)" for sign in ("", "-")]
    return line(text, *guards, flags=[OPAQUE] if "stop_recording" in text else [])


def mapped(d: Draw, snippets: str = MAPS) -> Node | None:
    """`vmap` of several arguments and results, along other axes, and of functions with loops, lists and branches inside."""
    x = d.array("f", least=1)
    if x is None or not d.env[x].size:
        return None
    rank, c = len(d.shape(x)), d.number(0.2, 1.0)
    given = {"x": x, "y": d.partner(x, "f"), "num": str(c), "n": str(d.random.randint(1, 3)), "size": str(d.env[x].size)}
    text = filled(d.choice(pieces(snippets)), {**given, "axis": str(d.random.randrange(-rank, rank)), **new_names(d)})
    sums = f"np.sum({x}, axis=tuple(range(1, {rank})))"
    return line(text, *(f"apart({sums} * {0.5**k}, {c})" for k in range(5)), f"distinct({x}, -1)")


def custom(d: Draw) -> Node | None:
    """Functions with correct custom derivatives, in loops, branches, maps and checkpoints."""
    x = d.array("f")
    if x is None:
        return None
    g, out, n, code = d.fresh("g"), d.fresh(), d.random.randint(1, 3), d.code(x)
    functions = [
        f"@aj.custom_gradient\ndef {g}(u):\n    s = np.sin(u)\n    return s, lambda ct: ct * np.cos(u)",
        f"@aj.custom_vjp\ndef {g}(u):\n    return np.sin(u)\n{g}.defvjp(lambda u: (np.sin(u), u), lambda kept, ct: (ct * np.cos(kept),))",
        f"@aj.custom_jvp\ndef {g}(u):\n    return np.sin(u)\n{g}.defjvp(lambda us, ts: (np.sin(us[0]), ts[0] * np.cos(us[0])))",
    ]
    a, k = d.fresh("t"), d.fresh("k")
    uses = [
        f"{a} = {x} * 1.0\nfor {k} in aj.range({n}):\n    {a} = {g}({a}) * 0.9\n{out} = {a}",
        f"{a} = {x} * 1.0\n{k} = 0\nwhile {k} < {n}:\n    {a} = {g}({a}) * 0.9\n    {k} = {k} + 1\n{out} = {a}",
        f"{out} = {g}({g}({x}) * 0.5)",
        f"{out} = aj.grad(lambda u: np.sum({g}(u) * u))({x})",
        f"{out} = aj.grad(lambda u: np.sum(aj.grad(lambda v: np.sum({g}(v) * v))(u)))({x})",
        f"{out} = aj.checkpoint(lambda u: {g}(u) * u)({x})",
        f"{out} = aj.vmap({g})(np.ravel({x} * 1.0)[:4])",
        f"{out} = aj.vmap(aj.grad({g}))(np.ravel({x} * 1.0)[:4])",
        f"{out} = aj.scan(lambda c, u: (({g}(c) + np.sum(u)).astype('{code}'), {g}(u)), np.sum({x}), np.atleast_1d({x}))[1]",
        f"{out} = aj.fori_loop(0, {n}, lambda i, u: {g}(u) * 0.5, {x})",
    ]
    return line(f"{d.choice(functions)}\n{d.choice(uses)}")


def with_states(d: Draw) -> Node | None:
    """`scan`, `while_loop`, `fori_loop`, `cond` and `switch` with structures as states."""
    x = d.array("f", least=1)
    if x is None or not d.env[x].size:
        return None
    out, c, n, code = d.fresh(), d.number(0.2, 1.0), d.random.randint(0, 4), d.code(x)
    state = f"{{'a': np.sum({x}), 'n': 0}}"
    step = "lambda c, u: ({'a': c['a'] * 0.5 + np.sum(u) * 0.1, 'n': c['n'] + 1}, {'y': u * c['a'], 'n': c['n']})"
    pair, shorter = f"(np.sum({x}), np.zeros((), '{code}'))", f"lambda s: {{'u': (s['u'] * 0.6).astype('{code}'), 'k': s['k'] + 1}}"
    forms = [
        f"aj.scan({step}, {state}, {x})[0]['a']",
        f"aj.scan({step}, {state}, {x}, reverse=True)[1]['y']",
        f"aj.scan({step}, {state}, {x})[1]['n'] * np.sum({x})",
        f"aj.scan(lambda c, p: ((c[0] * 0.5 + np.sum(p[0]), c[1] + 1.0), p[0] * p[1]), {pair}, ({x}, {x} * 0.5))[1]",
        f"aj.while_loop(lambda s: np.sum(s['u'] * s['u']) > {c}, {shorter}, {{'u': {x}, 'k': 0}})['u']",
        f"aj.fori_loop(0, {n}, lambda i, s: (s[1], np.sin(s[0]) + i), ({x}, {x} * 0.5))[0]",
        f"aj.cond(np.sum({x}) > {c}, lambda p: (p['u'], 0.5), lambda p: (np.sin(p['u']), 1.5), {{'u': {x}}})[0]",
        f"aj.switch({n}, [lambda u: u, lambda u: np.sin(u), lambda u: u * u], {x})",
        f"aj.switch(np.sum({x} > {c}) % 3, [lambda u: u, lambda u: np.sin(u), lambda u: u * u], {x})",
        f"aj.map(lambda p: p['u'] * np.sum(p['v']), {{'u': {x}, 'v': {x} * 2.0}})",
        f"aj.scan(lambda c, _: (np.tanh(c), c), {x}, None, length={n + 1})[1]",
    ]
    guards = [
        f"apart(np.sum({x}), {c})", f"apart(np.sum({x} * {x}) * 0.36 ** np.arange(12), {c})", f"apart({x}, {c})",
    ]  # fmt: skip
    return line(f"{out} = {d.choice(forms)}", *guards)


RULES: list[Rule] = [(3, of_structures), (2, of_higher_order), (2.5, by_tapes), (3, mapped), (2, custom), (2, with_states)]
