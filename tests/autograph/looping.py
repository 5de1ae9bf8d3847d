"""Programs that loop: `for`, `while`, `break`, `continue`, `else`, zero trips, ranges with steps, rows, lists."""

# ruff: noqa: B007, PERF401, SIM - programs as people write them

from __future__ import annotations

import numpy as np

import adjit.tracer.autograph.items as hints
from tests.autograph.table import program

V = np.array([0.5, -1.5, 2.0, 3.25, 1.0])
M = np.arange(12.0).reshape(4, 3) / 7 - 0.5


@program((V, 5), (V, 0), (V, 2))
def sum_of_first(x, n):
    s = 0.0
    for i in range(n):
        s += x[i]
    return s


@program((V, 1, 5, 2), (V, 4, -1, -1), (V, 3, 3, 1), (V, 4, 0, -3))
def range_with_step(x, start, stop, step):
    s = 0
    for i in range(start, stop, step):
        s = s * 2 + x[i]
    return s


@program((2.0, 10.0), (20.0, 10.0))
def while_below(x, limit):
    while x < limit:
        x = x * 1.5
    return x


@program((V,))
def unrolled_range(x):
    y = x
    for i in range(4):
        y = np.tanh(y) + i
    return y


@program((np.array([0.1, 0.2]),))
def long_range_rolls(x):
    for i in range(200):
        x = x + 0.01 * np.sin(x) * i
    return x


@program((0.3,))
def hinted_range(x):
    for i in hints.range(3):
        x = np.sin(x) + i
    return x


@program((V, 2.5), (V, 100.0), (V, -100.0))
def break_in_if_in_while(x, limit):
    total = 0.0
    i = 0
    while i < 5:
        if x[i] > 1.5:
            if total + x[i] > limit:
                break
            total = total + x[i]
        i = i + 1
    return total + i


@program((V,), (-V,))
def continue_in_for(x):
    s = 0.0
    for i in hints.range(5):
        if x[i] < 0:
            continue
        s = s + np.sqrt(x[i])
    return s


@program((V, 3), (V, 0))
def continue_and_break(x, n):
    s = 1.0
    for i in range(n):
        if x[i] < 0:
            s = s * 2
            continue
        s = s + x[i]
        if s > 4:
            s = -s
            break
        s = s + 0.5
    return s


@program((V, 1.0), (V, 77.0), differentiable=False)
def find_first_returns_from_loop(x, wanted):
    for i in range(5):
        if x[i] == wanted:
            return i
    return -1


@program((V, 5, 1.0), (V, 5, 77.0), (V, 0, 1.0), differentiable=False)
def find_first_in_dynamic_range(x, n, wanted):
    for i in range(n):
        if x[i] == wanted:
            return i
    return -1


@program((V, 3.0), (V, 100.0))
def for_else(x, limit):
    s = 0.0
    for i in hints.range(5):
        s = s + x[i]
        if s > limit:
            break
    else:
        s = s * 10
    return s


@program((2.0, 100), (2.0, 3))
def while_else(x, n):
    while x < 50:
        x = x * 3
        if x > n:
            break
    else:
        x = -x
    return x


@program((M, 4, 3), (M, 0, 3), (M, 2, 0))
def nested_loops(m, rows, columns):
    s = 0.0
    for i in range(rows):
        t = 0.0
        for j in range(columns):
            t = t + m[i, j] * (i + 1)
        s = s + t * t
    return s


@program((M, 0.2), (M, 5.0), (M, -5.0))
def break_out_of_inner_loop(m, limit):
    s = 0.0
    for i in hints.range(4):
        for j in hints.range(3):
            if m[i, j] > limit:
                break
            s = s + m[i, j]
        s = s + 1
    return s


@program((M, 0.6), (M, 50.0))
def return_out_of_two_loops(m, limit):
    for i in hints.range(4):
        for j in hints.range(3):
            if m[i, j] > limit:
                return m[i, j] * (i + j)
    return limit * 2


@program((M,))
def rows_of_array(m):
    s = np.zeros(3)
    for row in m:
        s = s + row * row[0]
    return s


@program((np.linspace(0, 1, 300).reshape(100, 3),))
def many_rows_roll(m):
    total = 0
    for row in m:
        total = total + np.sin(row)
    return total


@program((M, V[:4]))
def enumerate_and_zip(m, v):
    s = 0.0
    for i, row in enumerate(m):
        s = s + i * row.sum()
    for row, w in zip(m, v):
        s = s + w * row[1]
    for x in reversed(v):
        s = s * 0.5 + x
    return s


@program((1.5,))
def python_iterables(x):
    s = 0.0
    for name, factor in {"a": 2.0, "b": 3.0}.items():
        s = s + x * factor * len(name)
    for w in [1.0, x, 2]:
        s = s + w
    for c in "abc":
        s = s + ord(c)
    return s


@program((1.5, 2.5), (1.5, 0.5))
def traced_break_in_python_iterable(x, limit):
    s = 0.0
    for w in [1.0, 0.5, 2.0]:
        if s > limit:
            break
        s = s + w * x
    return s


@program((V,))
def list_of_unrolled(x):
    ys = []
    for i in range(5):
        ys.append(x[i] * i)
    return np.stack(ys).sum(), len(ys)


@program((0.5,))
def list_of_rolled(x):
    ys = []
    for i in range(100):
        x = np.cos(x)
        ys.append(x)
    return np.stack(ys), ys[-1] - ys[0], len(ys)


@program((0.5,))
def list_of_pairs_of_rolled(x):
    out = [x]
    for i in hints.range(10):
        x = x * 1.1
        out.append(x)
        out.append(-x)
    return np.array(out)


@program((np.array([1.0, 2.0]),))
def rows_written(x):
    out = np.zeros((80, 2))
    for i in range(80):
        x = x * 0.9
        out[i] = x + i
    return out


@program((V,))
def items_written_in_dynamic_order(x):
    y = x.copy()
    for i in hints.range(4):
        if y[i] > y[i + 1]:
            y[i], y[i + 1] = y[i + 1], y[i]
    return y


@program((V, 5), (V, 1))
def prefix_sums(x, n):
    out = np.zeros(5)
    s = 0.0
    for i in range(n):
        s += x[i]
        out[i] += s
    return out


@program((3.0, 4), (3.0, 0))
def while_with_counter(x, n):
    i = 0
    while i < n:
        x = x / 2 + i
        i += 1
    return x


@program((100.0,), (1.0,))
def while_true(x):
    count = 0
    while True:
        if x < 2:
            break
        x = np.sqrt(x)
        count += 1
    return x + count


@program((100.0,))
def variable_from_certain_trip(x):
    while True:
        y = x * 0.5
        x = y - 1
        if x < 3:
            break
    return y


@program((0.5,))
def variable_from_loop(x):
    for i in range(90):
        y = x + i
        x = np.sin(y)
    return y + i


@program((2.0,))
def static_while(x):
    n = 3
    while n > 0:
        x = x * n
        n -= 1
    return x


@program((1.01,))
def long_static_while(x):
    n = 0
    while n < 150:
        x = x * 1.001 + 0.001 * n
        n += 1
    return x


@program((5.0,))
def walrus_in_while(x):
    n = 0
    while (x := x * 0.5) > 0.1:
        n += 1
    return x + n


@program((2.0, 6), (2.0, 0))
def loop_in_branch_in_loop(x, n):
    for i in range(n):
        if x > 10:
            while x > 3:
                x = x - 2.5
        else:
            x = x * 2
    return x


@program((3, 4), (0, 4), (10, 0), differentiable=False)
def integers_only(a, b):
    total = 0
    for i in range(a):
        for j in range(i, b):
            total += i * j
    return total


@program((np.float32(0.5) * np.ones(3, np.float32), 4))
def float32_stays(x, n):
    s = 0.0
    for i in range(n):
        s = s + x * i
    return s


@program((V,))
def comprehension(x):
    squares = [v * v for v in x]
    table = {i: squares[i] + i for i in range(3)}
    return sum(squares) + sum(table.values())


@program((1.5, 3), (1.5, 0))
def state_in_dict(x, n):
    state = {"x": x, "total": 0.0}
    for i in range(n):
        state["x"] = state["x"] * 1.5
        state["total"] += state["x"]
    return state


@program((1.0, 5), (1.0, 1))
def delete_in_loop(x, n):
    for i in range(n):
        t = x * 2
        x = t + 1
        del t
    return x


@program((2.0, 3))
def augmented_assignments(x, n):
    y = 1.0
    for i in range(n):
        y += x
        y *= 1.5
        y -= i
        y /= 2
        y **= 2
    return y


@program((5.0, 2.0), (1.0, 2.0))
def for_with_unreachable_break(x, y):
    for i in hints.range(4):
        x = x + y
        if i > 100:
            break
    return x


@program((V,))
def maximum_by_hand(x):
    best = x[0]
    where = 0
    for i in hints.range(1, 5):
        if x[i] > best:
            best = x[i]
            where = i
    return best * (where + 1)


@program((3.0,), (-1.0,), (16.25,))
def loop_that_returns_at_the_end_of_a_branch(x):
    if x > 0:
        while x < 100:
            x = x * 2
            if x > 60 and x < 70:
                return x + 0.5
    else:
        for _ in range(4):
            x = x - 1
            if x < -3.5:
                return x
    return x * 10


@program((2.0,), (5.0,))
def walrus_in_while_with_break_and_else(x):
    n = 0
    while (y := x * 0.7) > 1:
        x = y
        n += 1
        if n > 3:
            break
    else:
        n = n + 100
    return x + y + n


@program((2.0, 3.0, 1), (2.0, 3.0, 0))
def loop_that_returns_what_was_there(x, y, n):
    while n > 0:
        return x * 2, y
    return y, x * y


@program((0.4,), (5.1,), (30.0,))
def found_or_not(x):
    for i in range(5):
        if x > 3 * i + 2:
            y = x * i
            if x > 20:
                y = -x
                break
            break
    else:
        y = -2 * x
    k = 0
    while k < 4:
        k += 1
        if x * k > 2:
            z = x * k
            break
        if x < -1:
            z = 0.0
            break
    else:
        z = x
    return y, z


@program((0.5, 3), (5.3, 3), (2.5, 0))
def found_in_rows(x, n):
    for i in range(n):
        for j in range(n):
            if x > i + j:
                continue
            where = 1.0 * i * x
            break
        else:
            where = -x
        x = x + where
    return x


@program((V, 3))
def array_that_stays_what_it_is(x, n):
    weights = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    state = {"w": weights, "h": x}
    for _ in range(n):
        weights, weights = weights, weights
        state = {**state, "h": np.tanh(state["h"] * state["w"])}
    return state["h"] * weights, state["w"]


@program((2.0, 3), (0.1, 3), (0.1, 0))
def name_that_only_iterations_read(x, n):
    y, k = x, 0
    while k < 4 and x > 0.8:
        for j in range(3):
            last = x * j
        y = y + last
        x = x * 0.9
        k = k + n
        if n == 0:
            break
    return y


def halves(x):
    for j in range(3):
        x = x * 0.5
        yield j, x


@program((V, 2.0), (V, 0.1), (V * 0.1, 3.0))
def name_that_only_iterations_read_from_a_generator(x, limit):
    y = np.sum(x)
    while np.sum(x * x) > limit:
        for j, h in halves(x):
            part = h + j
        y = y + np.sum(part)
        x = x * 0.5
    return y
