"""Random functions of the IR, for properties that every function must have.

`random_func` draws from a `random.Random`; hypothesis' `st.randoms(use_true_random=False)` makes what it finds shrink.
"""

from __future__ import annotations

from dataclasses import fields
from random import Random
from typing import Any

import numpy as np

from adjit.ir.builder import Builder
from adjit.ir.func import Block, Func, Value
from adjit.ir.location import Location
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import REGISTRY, Op
from adjit.ir.ops.control import For, If, While
from adjit.ir.ops.create import Constant, Fill, Iota
from adjit.ir.ops.index import Gather, ScatterSet
from adjit.ir.ops.join import Concatenate
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.maps import Binary, Cast, Map, Unary, Where
from adjit.ir.ops.reduce import Max, Min, Sum
from adjit.ir.ops.scan import Cumsum
from adjit.ir.ops.shape import Broadcast, Flip, Pad, Reshape, Slice, Transpose
from adjit.ir.ops.stack import StackRead
from adjit.ir.types import BOOL, F32, F64, I32, I64, DType, StackType, TensorType, normalize_axes

SHAPES = [(), (1,), (3,), (2, 3), (3, 1), (0,), (2, 1, 3)]
HINTS = [None, None, "x", "y", "y", "y.1", "y.bar", "π", "layers/0/W", "0", "if", "yield", "x..y", "%odd name"]
SPECIALS = [0.0, -0.0, 1.0, 0.1, -2.5, 1e-45, 1e300, float("inf"), float("-inf"), float("nan"), 1 / 3, 123456789.0]
OURS = [c for c in REGISTRY.values() if c.__module__.startswith("adjit.")]  # and not those of other tests
FIELDLESS = [c for c in OURS if issubclass(c, Map) and not fields(c) and not (c.effect or c.can_fail)]
FLOAT_UNARY = [c for c in FIELDLESS if issubclass(c, Unary) and "f" in c.kinds]
FLOAT_BINARY = [c for c in FIELDLESS if issubclass(c, Binary) and "f" in c.kinds]
INT_BINARY = [REGISTRY[name] for name in ("add", "sub", "mul")]


class _Drawn(Builder):
    """A builder that draws the name, place and phase of each statement."""

    def __init__(self, random: Random, params: list[Value], parent: Builder | None = None) -> None:
        super().__init__(params, parent)
        self.random = random

    def place(self) -> tuple[Location | None, str | None]:
        draw = self.random
        self.phase = draw.choice(["forward", "forward", "backward"])
        file = draw.choice(["model.py", "model.py", "<string>", "a dir/b.py", "C:\\x.py", "12"])
        location = Location(file, draw.randint(1, 99), draw.randint(0, 9)) if draw.random() < 0.7 else None
        return location, draw.choice(HINTS)


def random_type(random: Random) -> TensorType:
    return TensorType(random.choice([F64, F64, F32, I64, I32, BOOL]), random.choice(SHAPES))


def random_literal(random: Random, type: TensorType) -> Literal:
    if type.is_float:
        with np.errstate(over="ignore"):
            return Literal(type.dtype.type(random.choice(SPECIALS)), type)
    return Literal(random.randint(0, 1) if type.dtype == BOOL else random.randint(-5, 5), type)


def random_func(random: Random, size: int = 12) -> Func:
    params = [Value(random_type(random), random.choice(HINTS)) for _ in range(random.randint(1, 4))]
    with _Drawn(random, params) as b:
        pool: list[Operand] = list(params)
        _stmts(random, b, pool, size, depth=0)
    block = b.finish(_some(random, pool), _some(random, pool) if random.random() < 0.3 else ())
    updates = []
    for param in params:
        if random.random() < 0.3:
            same = [x for x in pool if x.type == param.type]
            updates.append((param, random.choice([*same, random_literal(random, param.type)])))
    given = [p for p in params if random.random() < 0.2]
    name = random.choice(["f", "loss.fwd", "<lambda>", "C.method"])
    return Func(name, block, given, updates, Location("model.py", 3, 1) if random.random() < 0.7 else None)


def random_arrays(random: Random, func: Func) -> list[Any]:
    """Arguments for a function."""
    numbers = np.random.default_rng(random.randint(0, 1000))
    return [np.asarray(numbers.integers(-3, 4, p.type.shape)).astype(p.type.dtype) for p in func.params]


def _some(random: Random, pool: list[Operand]) -> list[Operand]:
    some = [random.choice(pool) for _ in range(random.randint(0, 3))]
    return [random_literal(random, x.type) if random.random() < 0.2 else x for x in some]


def _stmts(random: Random, b: Builder, pool: list[Operand], size: int, depth: int, fused: bool = False) -> None:
    for _ in range(random.randint(0, size)):
        if not fused and depth < 2 and random.random() < 0.2:
            pool.extend(_region(random, b, pool, depth + 1))
        else:
            op, args = _simple(random, pool, fused)
            pool.extend(b.emit(op, args))


def _simple(random: Random, pool: list[Operand], fused: bool) -> tuple[Op, list[Operand]]:
    x = random.choice(pool)
    t = x.type
    kind = random.choice(["map", "map", "map", "cast", "where", "reduce", "shape", "create", "whole"])
    if kind == "map":
        y = random.choice([v for v in pool if v.type == t])
        if not t.is_float:
            return random.choice(INT_BINARY if t.dtype != BOOL else INT_BINARY[:1])(), [x, _or_literal(random, y)]
        if random.random() < 0.4:
            return random.choice(FLOAT_UNARY)(), [x]
        args = [x, _or_literal(random, y)]
        random.shuffle(args)
        return random.choice(FLOAT_BINARY)(), args
    if kind == "where":
        conditions = [v for v in pool if v.type == t.with_dtype(BOOL)] or [Literal(True, t.with_dtype(BOOL))]
        return Where(), [random.choice(conditions), _or_literal(random, x), random_literal(random, t)]
    if kind == "reduce" and t.dtype != BOOL:
        axes = [a for a in range(t.rank) if random.random() < 0.5]
        has_maxima = t.dtype.kind != "c" and all(t.shape[a] for a in axes)
        kinds = [Sum, Max, Min] if has_maxima else [Sum]
        return random.choice(kinds)(normalize_axes(axes, t.rank, "sum")), [_or_literal(random, x)]
    if kind == "shape":
        return random.choice(
            [
                Broadcast((2, *t.shape)) if t.rank < 4 else Reshape((t.size,)),
                Reshape((t.size,)),
                Transpose(tuple(random.sample(range(t.rank), t.rank))),
                Flip(tuple(a for a in range(t.rank) if random.random() < 0.5)),
                _slice(random, t),
                _pad(random, t),
            ]
        ), [_or_literal(random, x)]
    if kind == "create" and t.rank:
        if fused or random.random() < 0.5:
            return random.choice([Iota(I64, t.shape, random.randrange(t.rank)), Fill(random.choice(SPECIALS), F64, t.shape)]), []
        data = [random_literal(random, TensorType(t.dtype)).value for _ in range(t.size)]
        return Constant.of(np.array(data, t.dtype).reshape(t.shape)), []
    if kind == "whole" and t.rank and not fused:
        return _whole(random, pool, x)
    return Cast(_dtype(random)), [x]


def _whole(random: Random, pool: list[Operand], x: Operand) -> tuple[Op, list[Operand]]:
    """Ops that are separate kernels: they read or write whole arrays."""
    t, axis = x.type, random.randrange(x.type.rank)
    beside = [v for v in pool if v.type.rank == t.rank and v.type.dtype == t.dtype and _but(v.type.shape, axis) == _but(t.shape, axis)]
    choices: list[tuple[Op, list[Operand]]] = [(Concatenate(axis), [x, random.choice(beside)])]
    if t.dtype != BOOL:
        choices.append((Cumsum(axis), [x]))
    if t.shape[0]:
        at = Literal(random.randrange(t.shape[0]), TensorType(I64))
        choices.append((Gather(), [x, at]))
        choices += [(ScatterSet(), [x, v, at]) for v in pool if v.type == t.with_shape(t.shape[1:])][:1]
    if t.is_float and t.rank <= 2:
        choices += [(Matmul(), [x, v]) for v in pool if v.type.dtype == t.dtype and v.type.rank == 2 and v.type.shape[0] == t.shape[-1]][:1]
    return random.choice(choices)


def _but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _slice(random: Random, t: TensorType) -> Slice:
    starts = [random.randint(0, n) for n in t.shape]
    stops = [random.randint(start, n) for start, n in zip(starts, t.shape, strict=True)]
    return Slice(tuple(starts), tuple(stops), tuple(random.randint(1, 2) for _ in t.shape))


def _pad(random: Random, t: TensorType) -> Pad:
    low, high, interior = (tuple(random.randint(0, 1) for _ in t.shape) for _ in range(3))
    return Pad(
        low, high, interior if random.random() < 0.3 else (0,) * t.rank, random_literal(random, TensorType(t.dtype)).value.real.item()
    )


def _dtype(random: Random) -> DType:
    return random.choice([F64, F32, I64, BOOL])


def _or_literal(random: Random, x: Operand) -> Operand:
    return random_literal(random, x.type) if random.random() < 0.3 else x


def _region(random: Random, b: Builder, pool: list[Operand], depth: int) -> tuple[Value, ...]:
    carried = _some(random, pool)
    types = [x.type for x in carried]
    kind = random.choice([If, For, While])  # no `fuse`: passes that come before it would not keep its rules
    if kind is If:
        conditions = [x for x in pool if x.type == TensorType(BOOL)] or [Literal(random.random() < 0.5, TensorType(BOOL))]
        blocks = tuple(_block(random, b, pool, [], types, depth) for _ in range(2))
        return b.emit(If(), [random.choice(conditions)], blocks, types)
    index = TensorType(I64)
    params = [Value(t, random.choice(HINTS)) for t in types]
    if kind is For:
        body = _block(random, b, pool, [Value(index, "k"), *params], types, depth, saving=random.randint(0, 2))
        stacks = [StackType(x.type) for x in body.saving]
        trips = random.randint(0, 2)
        results = b.emit(For(), [Literal(0, index), Literal(trips, index), *carried], (body,), [*types, *stacks])
        if trips:
            return (*results[: len(types)], *(b.emit(StackRead(), [s, Literal(trips - 1, index)])[0] for s in results[len(types) :]))
        return results[: len(types)]
    return _while(random, b, pool, carried, depth)


def _while(random: Random, b: Builder, pool: list[Operand], carried: list[Operand], depth: int) -> tuple[Value, ...]:
    """Two rounds: the first carried value counts down to false."""
    index = TensorType(I64)
    types = [index, *(x.type for x in carried)]
    outer, inner = ([Value(t, random.choice(HINTS)) for t in types] for _ in range(2))
    with _Drawn(random, outer, b) as condition:
        (more,) = condition.emit(Cast(BOOL), [outer[0]])
    with _Drawn(random, inner, b) as body:
        (fewer,) = body.emit(REGISTRY["sub"](), [inner[0], Literal(1, index)])
        visible = [*pool, *inner[1:]]
        _stmts(random, body, visible, 3, depth)
    results = [fewer, *(random.choice([v for v in visible if v.type == t] or [random_literal(random, t)]) for t in types[1:])]
    return b.emit(While(), [Literal(2, index), *carried], (condition.finish([more]), body.finish(results)), types)


def _block(
    random: Random,
    b: Builder,
    pool: list[Operand],
    params: list[Value],
    types: list[TensorType],
    depth: int,
    fused: bool = False,
    saving: int = 0,
) -> Block:
    with _Drawn(random, params, b) as inner:
        visible = [*pool, *params]
        _stmts(random, inner, visible, 4, depth, fused)
    results = [random.choice([*(v for v in visible if v.type == t), random_literal(random, t)]) for t in types]
    return inner.finish(results, [_or_literal(random, random.choice(visible)) for _ in range(saving)])
