"""Classes that the programs use."""

# mypy: ignore-errors
from __future__ import annotations

import contextlib
import enum
import functools
import itertools
import operator

import numpy as np
from collections import ChainMap, Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field, replace


class Add:
    def __init__(self, box, v):
        self.box, self.v = box, v

    def __enter__(self):
        self.box[0] = self.box[0] + self.v
        return self

    def __exit__(self, *e):
        self.box[0] = self.box[0] * 2
        return False


class Swallow:
    def __enter__(self):
        return self

    def __exit__(self, t, v, tb):
        return t is KeyError


@dataclass
class Pt:
    a: object
    b: object


class K:
    total = 0
    items = []

    def __init__(self, v):
        self.v = v

    def bump(self, by):
        self.v = self.v + by
        return self

    @property
    def twice(self):
        return self.v * 2

    @twice.setter
    def twice(self, t):
        self.v = t / 2

    @classmethod
    def make(cls, v):
        return cls(v)

    @staticmethod
    def neg(v):
        return -v

    def __call__(self, y):
        return self.v * y

    def __add__(self, o):
        return K(self.v + (o.v if isinstance(o, K) else o))

    def __len__(self):
        return 3

    def __bool__(self):
        return bool(self.v > 0) if not hasattr(self.v, "aval") else True

    def __getitem__(self, i):
        return self.v * i

    def __contains__(self, i):
        return i == 2

    def __eq__(self, o):
        return self.v == o.v

    def __hash__(self):
        return 1

    def __lt__(self, o):
        return self.v < o.v


class Sl:
    __slots__ = ("p", "q")

    def __init__(self, p, q):
        self.p, self.q = p, q

    def step(self):
        self.p = self.p + self.q


class Desc:
    def __get__(self, o, t):
        return o._z + 1

    def __set__(self, o, v):
        o._z = v


class HasDesc:
    z = Desc()


class Sub(K):
    def bump(self, by):
        return super().bump(by * 2)


class Color(enum.Enum):
    RED = 1
    BLUE = 2


@dataclass
class St:
    pos: object
    vel: object = 1.0
    log: list = field(default_factory=list)

    def move(self, dt):
        self.pos = self.pos + self.vel * dt


@dataclass(frozen=True)
class Fr:
    a: object
    b: object = 2


P2 = namedtuple("P2", "u w")

GG = 0


class Cn:
    def __init__(self):
        self.c = 0

    def step(self):
        self.c = self.c + 1
        return self.c

    def __bool__(self):
        self.c += 1
        return True
