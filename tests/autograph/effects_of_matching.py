"""`match`, `is`, `min` and `max` on traced values: as in Python, or refused."""

import math

import numpy as np

from tests.autograph.effect_table import effect


@effect((2,), (3,), (7,), (0,))
def match_numbers(n):
    match n:
        case 2:
            return 20
        case 3 | 7 as m:
            return m * 10
        case -1 | None:
            return -5
        case _:
            return 0


@effect((2.0, 1), (2.0, 5), (-2.0, 1))
def match_numbers_in_a_sequence(x, n):
    y = 0.0
    match (x, [n, 3]):
        case (2.0 as z, [1, k]):
            y = z + k
        case (w, [5, *rest]) if w > 0:
            y = w * len(rest)
        case (w, _):
            y = -w
    return y


@effect((2,), (9,))
def match_many_numbers(n):
    match n:
        case 0:
            return 5
        case 1:
            return 4
        case 2:
            return 3
        case 3:
            return 2
        case 4:
            return 1
        case 5:
            return 0
        case 6:
            return 9
        case 7:
            return 8
        case 8:
            return 7
        case m:
            return m * 100


@effect((3.0,), (-3.0,), refused=True)
def match_true(x):
    match (x > 0, x):
        case (True, v):
            return v
        case _:
            return 0.0


@effect((3.0,), (-3.0,), refused=True)
def is_true(x):
    return 1.0 if (x > 0) is True else 2.0


@effect((3.0,), (-3.0,), refused=True)
def is_not_false(x):
    positive = x > 0
    if positive is not False:
        return 1.0
    return 2.0


@effect((3.0,), (-3.0,))
def match_objects(x):
    out = []
    for given in ("a", None, 2, {"k": 1, "m": 2}, [1, 2, 3], True):
        match given:
            case "a":
                out.append(1.0)
            case None:
                out.append(2.0)
            case True:
                out.append(6.0)
            case 2:
                out.append(x)
            case {"k": 1, **rest}:
                out.append(len(rest) + x)
            case [1, *more]:
                out.append(len(more))
    return out


@effect((math.nan, 1.0), (1.0, math.nan), (2.0, 1.0), (-0.0, 0.0))
def extremes_of_numbers(x, y):
    return max(x, y), min(x, y), max(x, 1.5), min(1.5, x), max(0, y), min(y, 3)


@effect((np.array([1.0, np.nan, 3.0]),), (np.array([np.nan, 1.0, 3.0]),), (np.array([2.0]),), (np.array([3, -1, 2]),))
def extremes_of_a_vector(v):
    return max(v), min(v), max([v[0], v[-1]]), min(list(v))


@effect((4.0,), (math.nan,))
def extremes_of_a_growing_list(x):
    ys = [x]
    k = 0
    while k < 3:
        ys.append(math.nan if k == 1 else x - k)
        k += 1
    return max(ys), min(ys)


@effect((np.array([1.0, 2.0, -1.0]), 1), (np.array([-1.0, 2.0]), 2), (np.array([1.0]), 5))
def every_case_binds_a_name_after_a_traced_break(x, n):
    y = 0.0
    for v in x:
        if v < 0:
            break
        match n:
            case 1:
                t = v * 2
            case 2 | 3:
                t = v * 3
            case _:
                t = v
        y = y + t
    return y


@effect((np.array([1.0, 2.0, 3.0]), 1), (np.array([4.0, 2.0]), 2), (np.array([1.0]), 5))
def some_cases_keep_the_value_of_the_iteration_before(x, n):
    y = t = 0.0
    for v in x:
        match n:
            case 1 if v > 1.5:
                t = v * 2
            case 2:
                t = t + v
        y = y + t
    return y, t
