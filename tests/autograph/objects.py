"""Programs with functions, methods, closures, defaults, `with` and `try` around and inside control flow."""

from __future__ import annotations

import contextlib
import functools

import numpy as np

import adjit.tracer.autograph.items as hints
from tests.autograph.table import program


def clipped(x, low=-1.0, *, high=1.0):
    if x < low:
        return low
    if x > high:
        return high
    return x


@program((0.5,), (-3.0,), (3.0,), differentiable=False)
def called_function(x):
    return clipped(x) + clipped(x, -5.0, high=2.0)


def make_scaler(limit):
    count = 0

    def scale(x):
        nonlocal count
        count += 1
        if x > limit:
            x = limit + (x - limit) * 0.5
        return x * count

    return scale


@program((0.75,), (4.0,))
def closure_with_state(x):
    scale = make_scaler(2.0)
    return scale(x) + scale(x + 1)


@program((2.0, 3), (-2.0, 3))
def nested_function(x, n):
    def step(y, k):
        if y > 4:
            return y - k
        return y * 2

    for i in range(n):
        x = step(x, i)
    return x


@program((2.0,), (-2.0,))
def closure_over_variable_changed_in_branch(x):
    y = 1.0

    def scaled():
        return x * y

    if x > 0:
        y = 3.0
    return scaled()


class Cell:
    def __init__(self, w):
        self.w = w
        self.__bias = 0.25

    def __call__(self, x):
        if x > 0:
            return self.activate(x * self.w)
        return self.__negative(x)

    def activate(self, x):
        while x > 1:
            x = x * 0.5
        return x + self.__bias

    def __negative(self, x):
        return x - self.__bias if x > -1 else -x


class Doubled(Cell):
    def activate(self, x):
        if x > 2:
            return super().activate(x) * 2
        return super().activate(x)

    @staticmethod
    def half(x):
        return x / 2 if x > 1 else x

    @classmethod
    def built(cls, x):
        return cls(2.0)(x)

    @property
    def twice(self):
        return self.w * 2


@program((3.0,), (0.4,), (-0.5,), (-2.0,))
def methods(x):
    return Cell(1.5)(x) + Doubled(1.5)(x) + Doubled.half(x) + Doubled.built(x) * Doubled(x).twice


@program((2.0,), (-2.0,))
def partial_and_lambda(x):
    twice = functools.partial(clipped, low=-0.5)
    square = lambda v: v * v if v > 0 else -v  # noqa: E731
    return twice(x, high=8.0) + square(x)


@program((2.0,), (-2.0,))
def with_block_in_branch(x):
    with contextlib.nullcontext(3.0) as c:
        if x > 0:
            with contextlib.nullcontext():
                x = x * c
        else:
            return x
    return x + 1


@program((2.0, 3), (9.0, 3))
def with_block_in_loop(x, n):
    for i in range(n):
        with contextlib.nullcontext(i) as k:
            if x > 5:
                break
            x = x * 2 + k
    return x


@program((2.0,), (-2.0,))
def try_finally(x):
    log = []
    try:
        if x > 0:
            x = x * 2
        log.append("body")
    finally:
        log.append("end")
    return x + len(log)


@program((2.0,))
def try_except_in_python(x):
    for key in ("a", "b", "c"):
        try:
            x = x * {"a": 2.0, "c": 3.0}[key]
        except KeyError:
            x = x + 1
        else:
            x = x - 0.5
    return x


@program((2.0, 5.0))
def match_on_static(x, y):
    for kind in ("add", "mul", "other"):
        match kind:
            case "add":
                x = x + y
            case "mul":
                x = x * y
            case _:
                x = -x
    return x


@program((3.0,), (-3.0,))
def default_arguments_and_keywords(x, *rest, scale=2.0, **more):
    if x > 0:
        x = x * scale
    for r in rest:
        x = x + r
    return x + len(more)


@program((np.array([1.0, 2.0, 3.0]),))
def map_and_filter(x):
    def positive(v):
        if v > 1.5:
            return v
        return -v

    return sum(map(positive, x)) + sum(filter(None, [1, 0, 2]))


@program((2.0, 4))
def function_chosen_by_static_value(x, n):
    table = {"sin": np.sin, "cos": np.cos}
    for name in ("sin", "cos"):
        f = table[name]
        for _ in hints.range(4):
            x = f(x) + n
    return x


@program((2.0,), (-2.0,))
def return_inside_of_with(x):
    with contextlib.nullcontext():
        if x > 0:
            return x
        y = x * 2
    return y  # noqa: RET504


@program((2.0,), (-2.0,))
def return_inside_of_try(x):
    out = []
    try:
        if x > 0:
            return x
        x = x - 1
    finally:
        out.append(1)
    return x + len(out)


CACHE = {"a": 0.0}


@program((2.0,), (-2.0,))
def global_container_changed_in_branch(x):
    CACHE["a"] = 0.0
    if x > 0:
        CACHE["a"] = x * 2
    else:
        CACHE.update(a=x)
    out = CACHE["a"] + 1
    CACHE["a"] = 0.0
    return out


class Meter:
    def __init__(self):
        self.total = 0.0
        self.count = 0
        self.extremes = Extremes()

    def add(self, x):
        if x > 0:
            self.total = self.total + x
        else:
            self.total = self.total - 2 * x
        self.count += 1
        self.extremes.update(x)


class Extremes:
    def __init__(self):
        self.low, self.high = 100.0, -100.0

    def update(self, x):
        self.low = min(self.low, x)
        if x > self.high:
            self.high = x


@program((1.5, 4), (1.5, 0))
def objects_changed_by_methods_in_loop(x, n):
    meter = Meter()
    for i in range(n):
        meter.add(x * x - i)
    return meter.total, meter.count, meter.extremes.low, meter.extremes.high * x


@program((1.5,), (-1.5,))
def objects_changed_by_methods_in_branch(x):
    meter = Meter()
    if x > 0:
        meter.add(x)
        meter.add(x * 2)
    else:
        meter.add(-x)
    return meter.total, meter.count, meter.extremes.high


@program((1.5, 4.0), (1.5, 40.0))
def objects_changed_by_methods_until_break(x, limit):
    meter = Meter()
    for w in [1.0, 2.0, x, 3.0]:
        meter.add(x * w)
        if meter.total > limit:
            break
    return meter.total, meter.count


@program((1.5, 10.0), (1.5, -1.0))
def objects_changed_by_methods_in_while(x, limit):
    meter = Meter()
    while meter.total < limit:
        meter.add(x)
        x = x * 1.1
    return meter.total * x, meter.count
