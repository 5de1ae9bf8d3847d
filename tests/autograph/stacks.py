"""Programs about lists that loops of unknown length append to or pop from, and about sorted lists."""

from __future__ import annotations

import numpy as np

import adjit as aj
from tests.autograph.table import program


@program((5.0,), (1.1,), (-2.0,))
def list_of_a_while(x):
    halves = []
    while x > 1:
        x = x / 2
        halves.append(x)
    total = 0.0
    for half in halves:
        total = total + half * half
    return total, len(halves), 1.0 * sum(halves)


@program((5.0,), (0.5,))
def list_read_by_the_test(x):
    trail = [x]
    while trail[-1] > 1:
        trail.append(trail[-1] / 2)
    return trail[-1] * len(trail), max(trail)


@program((6.3,), (0.5,))
def list_of_nested_whiles(x):
    pairs = []
    while x > 1:
        y = x
        while y > 1:
            y = y / 3
            pairs.append((x, np.stack([y, x * y])))
        x = x - 2
    total = 0.0
    for a, b in pairs:
        total = total + a * b[0] + b[1]
    return total


@program((5.5,), (0.5,))
def new_list_in_every_iteration(x):
    total = 0.0
    while x > 1:
        parts = []
        y = x
        while y > 1:
            y = y / 2
            parts.append(y)
        total = total + sum(parts)
        x = x - 1
    return total


@program((5.0,), (-2.0,))
def list_appended_by_a_helper(x):
    squares = []

    def add(value):
        squares.append(value * value)

    while x > 1:
        x = x - 0.7
        add(x)
    return 1.0 * sum(squares)


@program((5.0,), (1.5,), (-2.0,))
def tree_walked_with_a_stack(x):
    stack, total = [x], 0.0
    while stack:
        value = stack.pop()
        total = total + value * value
        if value > 1:
            stack.append(value / 2)
            stack.append(value / 3)
    return total


@program((5.0,), (1.5,), (-2.0,))
def list_popped_in_a_while(x):
    items, total = [x, x * 2, x * 3], 0.0
    while x > 1 and len(items) > 0:
        total = total * 2 + items.pop()
        x = x / 2
    return total + len(items) * x


@program((5.0,), (-2.0,))
def list_popped_in_a_rolled_loop(x):
    items, total = [x * k for k in range(70)], 0.0
    for _ in aj.range(70):
        total = total * 0.5 + items.pop()
    return total


@program((5.0,), (-2.0,))
def list_popped_in_a_branch(x):
    items = [x, x + 1]
    if x > 0:
        items.pop()
    return items[-1] * len(items)


@program((5.0,), (-2.5,), (-0.4,))
def sorted_by_a_key(x):
    items = sorted([x, -x - 3, x + 1, 0.25], key=abs)
    return items[0] + 10 * items[1] + 100 * items[3]


@program((5.0,), (-2.0,))
def sorted_backwards(x):
    return sorted([x, -x, 1.0, x * x], reverse=True)[1]


@program((5.0,), (-2.0,))
def pairs_sorted_stably(x):
    """Items with equal keys keep their order, in both directions."""
    pairs = [(x, 1.0), (-x, 2.0), (x, 3.0), (-x, 4.0)]
    out = 0.0
    for direction in (False, True):
        for a, b in sorted(pairs, key=lambda pair: pair[0], reverse=direction):
            out = out * 10 + b + a
    return out


@program((5.0, 1.0), (-2.0, 3.0))
def sorted_by_two_keys(x, y):
    items = sorted([(x, 1.0), (y, 2.0), (x, -3.0), (y, -4.0)])
    return items[0][1] + 10 * items[1][1] + 100 * items[2][1]


@program((5.0,), (-2.5,))
def sorted_in_place(x):
    items = [x, -x - 3, x + 1]
    items.sort(key=lambda v: v * v)
    return items[0] + 2 * items[1]


@program((np.array([3.0, -1.0, 2.0]),))
def elements_sorted(x):
    low, *_, high = sorted(x)
    return high - 2 * low


@program((2.0,), (-2.0,), differentiable=False)
def sets_that_nothing_traced_changes(x):
    seen = set()
    for k in range(7):
        seen.add(k % 3)
    return x * len(seen) if x > 0 else x + (2 in seen)


@program((5.0,), (2.5,), differentiable=False)
def counted_with_get(x):
    counts = {}
    for k in range(5):
        counts[k % 2] = counts.get(k % 2, 0) + (1 if x > k else 10)
    return counts[0] - counts[1]
