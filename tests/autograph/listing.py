"""Programs about lists that traced loops and branches append to."""
# ruff: noqa: PERF401 - the loops are tested

from __future__ import annotations

import numpy as np

import adjit as aj
from tests.autograph.table import program

V = np.array([0.5, -1.0, 2.0])


@program((0.5, 4.0), (3.0, 2.0), (0.5, 1e9))
def list_of_loop_left_early(x, limit):
    ys = []
    for _ in range(12):
        x = x * 1.5
        if x > limit:
            break
        ys.append(x)
    total = 0.0
    for y in ys:
        total = total + y * y
    return total, len(ys), 1.0 * sum(ys)


@program((0.5, 4.0), (3.0, 2.0))
def list_appended_before_break(x, limit):
    ys = []
    for _ in aj.range(9):
        x = x * 1.5
        ys.append(x)
        if x > limit:
            break
    return ys[-1] * ys[0], len(ys), max(ys), min(ys)


@program((V, 2.5), (V, 1e3))
def padded_list_of_vectors(x, limit):
    ys = []
    for k in aj.range(10):
        if x[2] > limit:
            break
        ys.append(x * k)
        x = x * 1.5
    else:
        ys.append(x)
    return aj.stack(ys, fill=-1.0, length=11) if len(ys) > 0 else np.zeros((11, 3))


@program((0.4,), (-1.2,))
def list_of_what_passes(x):
    kept = [x]
    for k in aj.range(20):
        x = np.sin(x + k)
        if x > 0:
            if x < 0.9:
                kept.append(x * x)
            else:
                kept.append(1 / x)
                kept.append(x)
    return kept[-1] + kept[0], len(kept), sum(kept)


@program((0.4,))
def recurrence_through_list(x):
    ys = [x, 2 * x]
    for k in aj.range(10):
        ys.append(np.sin(ys[-1]) + ys[k] * ys[-2])
    return aj.stack(ys), ys[3], len(ys)


@program((0.4, 3), (0.4, 0), (0.4, 9))
def list_indexed_by_argument(x, i):
    ys = []
    for k in aj.range(10):
        ys.append((x * k, k))
    value, k = ys[i]
    return value * value, k


@program((0.4, 0.5), (0.6, 0.5))
def list_longer_in_one_branch(x, limit):
    ys = [x]
    if x > limit:
        ys.append(x * x)
    ys.append(3 * x)
    return ys[1], ys[-1], 1.0 * sum(ys, 0.5), len(ys)


@program((0.4,))
def list_of_nested_loops(x):
    ys = []
    for i in aj.range(4):
        for j in aj.range(3):
            ys.append(x * i + j * x * x)
    for _ in aj.range(2):
        ys += [x]
    ys.append(7 * x)
    return aj.stack(ys)


@program((0.4, 1.0), (0.9, 1.0))
def list_of_nested_loops_left_early(x, limit):
    ys = []
    for i in aj.range(4):
        for j in aj.range(3):
            if x * j > limit:
                break
            ys.append(x * i + j)
        x = x * 1.3
    return sum(ys) * 1.0, len(ys), max(ys)


@program((0.4,), (0.9,))
def list_asked_whether_it_is_empty(x):
    ys = []
    for k in aj.range(8):
        if ys and ys[-1] > 2:
            x = x - ys[-1]
        if not ys or x > 0.3:
            ys.append(x + k)
    return x, ys[-1]


@program((0.4,))
def items_replaced(x):
    ys = [0.0]
    for k in aj.range(5):
        ys.append(x * k)
        ys[0] = ys[0] + ys[-1]
        ys[-1] = ys[-1] * ys[-1]
    ys[2] = x * x
    return aj.stack(ys), len(ys)


@program((0.4, 0.5), (0.6, 0.5))
def list_started_again(x, limit):
    ys = [x]
    for _ in aj.range(6):
        if x > limit:
            ys = [x]
        ys.append(2 * x)
        x = 1.1 * x if x < 0.7 else x * 0.5
    return 1.0 * sum(ys), len(ys), ys[-1]


@program((0.4, 0.5), (0.6, 0.5))
def lists_walked_together(x, limit):
    xs, ys = [], []
    for k in aj.range(7):
        if x * k > limit:
            break
        xs.append(x * k)
        ys.append(np.sin(x) - k)
    total = 0.0 * x
    for i, (a, b) in enumerate(zip(xs, ys)):
        total = total + a * b * i
    for b in reversed(ys):
        total = 0.5 * total + b
    return total


@program((0.4, 0.5), (0.6, 0.5))
def list_made_from_list(x, limit):
    xs = []
    for k in aj.range(7):
        if x * k > limit:
            break
        xs.append(x * k)
    squares = []
    for y in xs:
        squares.append(y * y + x)
    return 1.0 * sum(squares), len(squares), any(s > 0.6 for s in ()) or all([x > 0])


class History:
    def __init__(self, x):
        self.states = [x]

    def step(self, k):
        self.states.append(np.sin(self.states[-1] + k))


@program((0.4, 0.9), (0.4, 2.0))
def history_of_object(x, limit):
    history = History(x)
    for k in aj.range(6):
        history.states.append(np.sin(history.states[-1]) + k * x)
        if history.states[-1] > limit:
            break
    return history.states[-1], len(history.states)


@program((0.4,))
def list_under_checkpoint(x):
    ys = []
    for _ in aj.range(30, checkpoint="sqrt"):
        x = np.sin(2 * x)
        ys.append(x)
    return sum(ys)


@program((0.5, 1.0), (5.0, 1.0))
def dict_of_lists(x, limit):
    log = {"x": [], "n": 0, "y": [x]}
    for k in aj.range(4):
        x = x * 1.1
        log["x"].append(x)
        log["n"] += 1
        if x > limit:
            log["y"].append(x * k)
    return aj.stack(log["x"]), log["n"], 1.0 * sum(log["y"]), len(log["y"])


def push(items, x):
    items.append(x * x)


@program((0.5, 1.0), (5.0, 1.0))
def appended_by_a_function(x, limit):
    ys = []
    for _ in aj.range(4):
        push(ys, x)
        x = x * 1.1
    if x > limit:
        push(ys, -x)
    return 1.0 * sum(ys), len(ys)


@program((0.4, 0.9), (0.4, 2.0))
def history_kept_by_method(x, limit):
    history = History(x)
    for k in aj.range(6):
        history.step(k)
        if history.states[-1] > limit:
            break
    return history.states[-1], len(history.states)


@program((V, 0.5))
def arrays_of_lists(x, a):
    rotation = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
    state = np.asarray([x[0], 1.0])
    for _ in aj.range(3):
        state = rotation @ state + np.array([v * a for v in (x[1], x[2])])
    return state, np.array((a, 2), dtype="f8"), np.array([1.0, 2.0])
