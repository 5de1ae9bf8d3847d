"""Programs that branch: `if`, early `return`, `and`/`or`/`not`, comparisons, conditional expressions, assertions."""

# ruff: noqa: RET504 - programs as people write them

from __future__ import annotations

import numpy as np

import adjit.tracer.autograph.items as hints
from tests.autograph.table import program

V = np.array([0.5, -1.5, 2.0, 3.25])


@program((2.0,), (-2.0,))
def branch(x):
    if x > 0:
        y = x * 2
    else:
        y = -x
    return y


@program((2.0,), (-2.0,))
def branch_without_else(x):
    y = x
    if x > 0:
        y = y * y
    return y + 1


@program((5.0,), (1.0,), (-1.0,), (-7.0,))
def elif_chain(x):
    if x > 3:
        r = x * 2
    elif x > 0:
        r = x + 10
    elif x > -5:
        r = x * x
    else:
        r = -x
    return r


@program((1.0, 2.0), (2.0, 1.0), (-1.0, -2.0), (-2.0, -1.0))
def nested_branches(x, y):
    if x > 0:
        if x > y:
            r = x - y
        else:
            r = y - x
    else:
        r = x * y
        if y > -1.5:
            r = r + 1
    return r


@program((3.0,), (-3.0,))
def early_return(x):
    if x > 0:
        return x * x
    y = x + 1
    return y * 2


@program((3.0,), (0.5,), (-3.0,), (-0.5,))
def many_returns(x):
    if x > 1:
        if x > 2:
            return x * 3
        x = x + 1
    elif x < -1:
        return -x
    z = x * x
    if z > 0.2:
        return z
    return z + 100


@program((3.0,), (-3.0,))
def return_in_both(x):
    if x > 0:
        return np.sin(x)
    else:
        return np.cos(x)


@program((V,), (-V,))
def branch_on_array(x):
    if np.sum(x) > 0:
        x = x / np.sum(x)
    return x * 2


@program((V,), (-V,))
def weak_scalar_against_array_dtype(x):
    if x[0] > 0:
        scale = 1
    else:
        scale = 0.5
    return x * scale


@program((2.0,), (0.0,), (-1.0,), differentiable=False)
def sign_as_integer(x):
    if x > 0:
        return 1
    if x < 0:
        return -1
    return 0


@program((1.0, 2.0), (3.0, 2.0), (0.0, 5.0))
def ternary(x, y):
    return x * 2 if x < y else y - x


@program((0.2,), (1.5,), (7.0,))
def nested_ternary(x):
    return x if x < 1 else x * x if x < 5 else 25.0


@program((1.0,), (5.0,), (20.0,), differentiable=False)
def chained_comparison(x):
    inside = 0 < x <= 5 < 10
    return inside, x > 0, not inside


@program((1.0, 2.0), (-1.0, 2.0), (1.0, -2.0), (-1.0, -2.0))
def and_or_not(x, y):
    r = 0.0
    if x > 0 and y > 0:
        r = r + x
    if x > 0 or y > 0:
        r = r + 10 * y
    if not (x > 0):
        r = r + 100 * x
    if (not x > 0 and not y > 0) or x > y:
        r = r + 1000 * x * y
    return r


@program((np.array([1.0, 2.0, 3.0]), 1), (np.array([1.0, 2.0, 3.0]), 7), differentiable=False)
def and_guards_an_index(x, i):
    if i < 3 and x[i] > 1:
        return x[i]
    return -1.0


@program((2.0, "double"), (2.0, "square"), (2.0, "other"))
def static_text(x, mode):
    if mode == "double":
        return x * 2
    elif mode == "square":
        return x * x
    return x


@program((2.0, None), (2.0, 3.0))
def optional_argument(x, y):
    if y is None:
        y = 1.0
    return x * y


@program((2.0, True), (-2.0, True), (2.0, False))
def static_and_traced(x, flag):
    if flag and x > 0:
        return x
    return x - 1


@program((2.0,), (-2.0,))
def structure_from_branches(x):
    if x > 0:
        pair = (x, {"a": x * 2, "b": [x, x + 1]})
    else:
        pair = (-x, {"a": x * 3, "b": [x * x, x]})
    first, rest = pair
    return first + rest["a"] * rest["b"][1], rest


@program((3.0, 4.0), (4.0, 3.0))
def unpacking_in_branch(x, y):
    if x > y:
        x, y = y, x
    return y - x, x * y


@program((2.0,), (-2.0,))
def unused_temporary_in_one_branch(x):
    y = x
    if x > 0:
        t = x * x
        y = t + 1
    t = y * 3
    return t


@program((0.3, 5.0), (0.7, 5.0))
def assertion(x, y):
    assert x > 0, "x must be positive"
    assert y < 10
    return x * y


@program((2.0,))
def raise_in_a_branch_not_taken(x):
    if x < 0:
        raise ValueError(f"x is negative")  # noqa: F541 - as people write it
    return np.sqrt(x)


@program((V,), (-V,))
def truth_of_reductions(x):
    if any(v > 3 for v in x):
        return x.sum()
    if all([x[0] > -1, x[1] > 0]):
        return x.prod()
    return x.max()


@program((1, 5), (5, 1), (3, 3), differentiable=False)
def member_of_tuple(i, j):
    if i in (1, 2, 3):
        return 10 * j
    if j not in [1, 2]:
        return i
    return i - j


@program((2.0, 3.0), (3.0, 2.0))
def python_min_max(x, y):
    low, high = min(x, y), max(x, y, 2.5)
    return high - low + abs(x - y) + sum([x, y, 1])


@program((7.9,), (-7.9,), differentiable=False)
def numbers_of_traced(x):
    whole = int(x)
    if bool(whole):
        return whole + float(x)
    return 0.0


@program((1.0, 2.0, 3.0), (3.0, 2.0, 1.0), (2.0, 3.0, 1.0), (2.0, 1.0, 3.0))
def beam_of_conditionals(a, b, c):
    score = 0.0
    score = score + (a if a > b else b)
    score = score + (b * 2 if b > c else c * 3)
    if a > b and b > c:
        score = score * 2
    elif a > c or c > b:
        score = score - a
    if score > 5:
        score = 5 + (score - 5) * 0.1
    return score


@program((2.0,), (-2.0,))
def docstring_and_pass(x):
    """A function with a docstring."""
    if x > 0:
        pass
    else:
        x = x - 1
    return x


@program((np.array([1.0, 2.0]),), (np.array([-1.0, 2.0]),))
def item_written_in_branch(x):
    y = np.zeros(3)
    y[0] = x[1]
    if x[0] > 0:
        y[1] = x[0] * 2
        y[2] += 1.0
    else:
        y[1:] = x
    return y


@program((2.0,), (-2.0,))
def dict_changed_in_branch(x):
    state = {"h": x, "n": 0}
    other = state
    if x > 0:
        state["h"] = x * 2
        state["n"] += 1
    return other["h"] + other["n"]


@program((1.5,), (0.5,))
def walrus(x):
    if (y := x * x) > 1:
        return y
    return y + 10


@program((V, 9.0), (V, 100.0))
def name_of_an_inner_loop_after_a_branch_that_leaves(x, limit):
    """A loop over `range(2)` certainly assigns its names: no value of an earlier iteration is read."""
    total = x * 0
    for _ in hints.range(3):
        if np.sum(np.abs(total)) > limit:
            break
        for k in range(2):
            last = x * (k + 1)
        total = total + last
    return total
