"""Programs that add keys to dicts in traced loops, or that see the order of keys."""

# ruff: noqa: B007, RUF015 - as users write

from __future__ import annotations

import numpy as np

from tests.autograph.effect_table import effect

V = np.array([1.0, -2.0, 3.0])


@effect((3,), (1,))
def only_body_key(n):
    d = {}
    for i in range(n):
        d["a"] = i * 2.0
    return d["a"]


@effect((3, 2.0), (1, -2.0))
def key_beside_others(n, x):
    d = {"z": x, "s": 0.0}
    for i in range(n):
        d["s"] = d["s"] + x
        d["last"] = (i, d["s"] * x)
    return d["last"], d["s"], list(d)


@effect((3, 2.0))
def nested_key(n, x):
    state = {"inner": {}, "t": 0.0}
    for i in range(n):
        state["inner"]["x"] = x * i
        state["t"] = state["t"] + state["inner"]["x"]
    return state


@effect((8.0,), (4.0,))
def key_in_while(x):
    d = {}
    while x > 1:
        d["x"] = x
        x = x / 2
    return d["x"]


def keep(where, x):
    where["kept"] = x


@effect((3, 2.0))
def key_made_by_helper(n, x):
    d = {}
    for i in range(n):
        keep(d, i * x)
    return d


@effect((3, 2.0), refused=True)
def key_read_by_get(n, x):
    d = {}
    for i in range(n):
        d["a"] = d.get("a", 1.0) * x
    return d["a"]


@effect((3, 2.0), refused=True)
def key_asked_for(n, x):
    d = {}
    for i in range(n):
        d["a"] = x if "a" in d else x * 2
    return d["a"]


@effect((3, 2.0), refused=True)
def keys_counted(n, x):
    d, s = {}, 0.0
    for i in range(n):
        s = s + len(d) * x
        d["a"] = x
    return s


@effect((3, 2.0), refused=True)
def key_of_default(n, x):
    d, s = {}, 0.0
    for i in range(n):
        s = s + d.setdefault("a", x * i)
    return s


@effect((3, 2.0), refused=True)
def order_changes_in_loop(n, x):
    d = {"b": x, "a": x}
    for i in range(n):
        d = {"a": d["b"], "b": d["a"] + 1}
    return list(d.values())


@effect((2.0,), (-2.0,))
def order_after_branch(x):
    d = {"b": 1.0, "a": x}
    if x > 0:
        d["b"] = x * 2
    return list(d.values())


@effect((2.0, 3), (2.0, 0))
def order_after_loop(x, n):
    d = {"b": 1.0, "a": x, 3: V}
    for i in range(n):
        d["b"] = d["b"] * x
    return list(d.values())


@effect((2.0,), (-2.0,), refused=True)
def order_differs_in_branches(x):
    if x > 0:
        d = {"a": x, "b": 1.0}
    else:
        d = {"b": x, "a": 1.0}
    return list(d.values())


@effect(({"z": 2.0, "a": V},))
def order_of_argument(d):
    return list(d.values())[0] * 3.0, list(d)


@effect((2.0,))
def order_of_result(x):
    return list({"z": x, "a": {"y": x, "b": 2 * x}}.items())
