"""Random programs that a user could have written, drawn from a seed.

`make_program(seed)` returns a `Program`: a callable on operands of any kind (eager, taped, traced), with its inputs in `arrays`. A program
is drawn by running it: a step is kept if its result is finite, small and of moderate size, and if no operand comes so close to a jump or a
kink (a comparison's tie, `floor` at an integer, `abs` at 0) that rounding could decide which side it falls on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from adjit.ir import ops
from adjit.ir.errors import AdjitError
from adjit.ir.operand import Concrete, Operand, as_operand
from adjit.ir.types import BOOL, F32, F64, I32, I64

Array = np.ndarray[Any, np.dtype[Any]]

MAX_SIZE = 600  # elements of a value
MAX_VALUE = 50.0
MARGIN = 1e-3  # between an operand and the next jump or kink

SHAPES = [(), (1,), (3,), (4,), (7,), (2, 3), (3, 1), (3, 4), (4, 4), (1, 4), (5, 3), (2, 3, 4), (2, 1, 3), (16,), (9, 17), (33,)]


class Step(NamedTuple):
    name: str
    inputs: tuple[int, ...]
    apply: Callable[..., Operand]
    margin: Callable[..., float] | None = None


class Program(NamedTuple):
    """Steps over a growing list of values, which begins with the inputs. Gives a scalar first, then a few values of any dtype."""

    seed: int
    arrays: list[Array]
    steps: list[Step]
    outputs: tuple[int, ...]

    def __call__(self, *operands: Operand) -> tuple[Operand, ...]:
        values = list(operands)
        for step in self.steps:
            values.append(step.apply(*(values[i] for i in step.inputs)))
        return tuple(values[i] for i in self.outputs)

    @property
    def tolerance(self) -> float:
        """Relative to the largest element of a result."""
        return 2e-3 if any("f32" in s.name for s in self.steps) or any(a.dtype == F32 for a in self.arrays) else 1e-9

    def __repr__(self) -> str:
        lines = [f"program {self.seed}:"]
        lines += [f"  v{i} = input {a.dtype}{list(a.shape)}" for i, a in enumerate(self.arrays)]
        lines += [f"  v{i} = {s.name}({', '.join(f'v{k}' for k in s.inputs)})" for i, s in enumerate(self.steps, len(self.arrays))]
        return "\n".join([*lines, f"  return {', '.join(f'v{k}' for k in self.outputs)}"])


def make_program(seed: int) -> Program:
    return _Draw(seed).program()


# ---- what a step can be: functions of one or two floating operands

SMOOTH: dict[str, Callable[[Operand], Operand]] = {
    "sin": ops.sin,
    "cos": ops.cos,
    "tanh": ops.tanh,
    "sigmoid": ops.sigmoid,
    "atan": ops.atan,
    "erf": ops.erf,
    "softplus": ops.softplus,
    "asinh": ops.asinh,
    "neg": ops.neg,
    "exp of sin": lambda x: ops.exp(ops.sin(x)),
    "expm1 of tanh": lambda x: ops.expm1(ops.tanh(x)),
    "sinh of tanh": lambda x: ops.sinh(ops.tanh(x)),
    "cosh of tanh": lambda x: ops.cosh(ops.tanh(x)),
    "tan of tanh": lambda x: ops.tan(ops.tanh(x)),
    "asin of half tanh": lambda x: ops.asin(0.5 * ops.tanh(x)),
    "acos of half tanh": lambda x: ops.acos(0.5 * ops.tanh(x)),
    "atanh of half tanh": lambda x: ops.atanh(0.5 * ops.tanh(x)),
    "square of tanh": lambda x: ops.square(ops.tanh(x)),
    "cube of tanh": lambda x: ops.tanh(x) ** 3,
    "log of square": lambda x: ops.log(x * x + 0.5),
    "log1p of square": lambda x: ops.log1p(x * x),
    "sqrt of square": lambda x: ops.sqrt(x * x + 0.5),
    "rsqrt of square": lambda x: ops.rsqrt(x * x + 0.5),
    "power of square": lambda x: (x * x + 0.5) ** 0.3,
    "inverse square": lambda x: (x * x + 0.5) ** -2,
    "halved": lambda x: x / 2.0,
    "third": lambda x: x / 3.0,
    "plus one": lambda x: x + 1.0,
    "one minus": lambda x: 1 - x,
    "times minus two": lambda x: x * -2.0,
    "over": lambda x: 1.0 / (x * x + 1.0),
    "twice": lambda x: x + x,
    "centred": lambda x: x - ops.sum(x) / max(x.size, 1),
    "normed": lambda x: x / ops.sqrt(ops.sum(x * x) + 1.0),
    "softmax": lambda x: _softmax(x),
    "stop_gradient": ops.stop_gradient,
    "same": lambda x: x * 1.0 + (-0.0),
    "twice flipped": lambda x: ops.flip(ops.flip(x)),
}
KINKED: dict[str, Callable[[Operand], Operand]] = {
    "abs": abs,
    "relu": ops.relu,
    "clip": lambda x: ops.clip(x, 0.0, None),
    "sign": ops.sign,
    "where positive": lambda x: ops.where(x > 0.0, ops.sqrt(x), 0.5 * x),
    "where safe": lambda x: ops.where(x > 0.0, ops.log(ops.maximum(x, 1e-3)), 0.0),
}
BINARY: dict[str, Callable[[Operand, Operand], Operand]] = {
    "add": ops.add,
    "sub": ops.sub,
    "mul": ops.mul,
    "div": lambda a, b: a / (b * b + 0.5),
    "atan2": lambda a, b: ops.atan2(a, b * b + 0.5),
    "hypot": lambda a, b: ops.hypot(a, b * b + 0.5),
    "logaddexp": ops.logaddexp,
    "power": lambda a, b: (a * a + 0.5) ** ops.tanh(b),
    "sub negated": lambda a, b: a - (-b),
    "mul and add": lambda a, b: a * b + a,
}
TIED: dict[str, Callable[[Operand, Operand], Operand]] = {
    "maximum": ops.maximum,
    "minimum": ops.minimum,
    "less": ops.less,
    "less_equal": ops.less_equal,
    "greater": ops.greater,
    "not_equal": ops.not_equal,
}


def _softmax(x: Operand) -> Operand:
    if not x.shape or not x.size:
        return x
    e = ops.exp(x - ops.max(x, -1, keepdims=True))
    return e / ops.sum(e, -1, keepdims=True)


def _gap_of_extreme(x: Array, axis: Any) -> float:
    """The distance between the two largest, and the two smallest, along an axis (or all)."""
    flat = np.sort(x.reshape(-1) if axis is None else x, axis=-1 if axis is None else axis).astype(float)
    n = flat.shape[-1 if axis is None else axis]
    if n < 2:
        return 1.0
    gaps = np.diff(flat, axis=-1 if axis is None else axis)
    ends = np.take(gaps, [0, n - 2], axis=-1 if axis is None else axis)
    return float(ends.min()) if ends.size else 1.0


class _Draw:
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.values: list[Operand] = []
        self.steps: list[Step] = []

    def program(self) -> Program:
        arrays = [self._input(first=not k) for k in range(self.random.randint(1, 4))]
        self.values = [Concrete(a) for a in arrays]
        wanted = self.random.randint(5, 60)
        attempts = 0
        while len(self.steps) < wanted - 4 and attempts < 40 * wanted:
            attempts += 1
            step = self._step()
            if step is not None:
                self._keep(step)
        loss = self._loss(len(arrays))
        others = tuple(self.random.sample(range(len(self.values)), k=min(3, len(self.values))))
        return Program(self.seed, arrays, self.steps, (loss, *others))

    def _input(self, first: bool) -> Array:
        shape = self.random.choice(SHAPES)
        dtype = F64 if first else self.random.choice([F64, F64, F64, F64, F32, I64, I32, BOOL])
        if dtype.kind == "f":
            return np.asarray(self.numbers.uniform(-2, 2, shape)).astype(dtype)
        return np.asarray(self.numbers.integers(0, 2 if dtype == BOOL else 6, shape)).astype(dtype)

    def _keep(self, step: Step) -> bool:
        operands = [self.values[i] for i in step.inputs]
        arrays = [x.data if isinstance(x, Concrete) else x.array() for x in operands]  # type: ignore[attr-defined]
        if step.margin is not None and not step.margin(*arrays) > MARGIN:
            return False
        try:
            out = step.apply(*operands)
        except AdjitError:
            return False  # shapes or dtypes that do not fit: drawn again
        array = out.data if isinstance(out, Concrete) else out.array()  # type: ignore[attr-defined]
        if array.size > MAX_SIZE or array.ndim > 4 or not np.abs(array.astype(float)).max(initial=0.0) <= MAX_VALUE:
            return False
        self.steps.append(step)
        self.values.append(out)
        return True

    def _loss(self, inputs: int) -> int:
        """A scalar that depends on the last values."""
        floats = [i for i, v in enumerate(self.values) if v.type.is_float]
        parts = list(dict.fromkeys([*floats[-3:], self.random.choice(floats), floats[0]]))
        weights = [self.random.uniform(0.5, 1.5) for _ in parts]

        def total(*xs: Operand) -> Operand:
            out: Any = 0.0
            for w, x in zip(weights, xs):
                out = out + ops.sum(ops.sin(x) * w)
            return ops.cast(out, F64)

        self.steps.append(Step("loss", tuple(parts), total))
        self.values.append(self.steps[-1].apply(*(self.values[i] for i in parts)))
        return len(self.values) - 1

    # ---- choosing operands: the newer the likelier

    def _pick(self, wanted: Callable[[Operand], bool]) -> int | None:
        fitting = [i for i, v in enumerate(self.values) if wanted(v)]
        if not fitting:
            return None
        return self.random.choice(fitting[-8:] if self.random.random() < 0.7 else fitting)

    def _float(self) -> int:
        found = self._pick(lambda v: v.type.is_float)
        assert found is not None
        return found

    def _partner(self, i: int) -> int:
        """A floating value that broadcasts against the i-th; the value itself if there is no other."""
        shape = self.values[i].shape

        def fits(v: Operand) -> bool:
            try:
                return v.type.is_float and len(np.broadcast_shapes(shape, v.shape)) <= 3
            except ValueError:
                return False

        found = self._pick(fits)
        return i if found is None else found

    # ---- steps

    def _step(self) -> Step | None:
        kinds: list[tuple[int, Callable[[], Step | None]]] = [
            (8, self._smooth),
            (2, self._kinked),
            (8, self._binary),
            (2, self._tied),
            (2, self._where),
            (4, self._reduction),
            (1, self._arg_extreme),
            (1, self._scan),
            (6, self._reshaped),
            (3, self._indexed),
            (2, self._written),
            (2, self._joined),
            (3, self._product),
            (2, self._cast),
            (3, self._integers),
            (1, self._bools),
            (1, self._created),
        ]
        (make,) = self.random.choices([make for _, make in kinds], [weight for weight, _ in kinds])
        return make()

    def _smooth(self) -> Step:
        name = self.random.choice(list(SMOOTH))
        return Step(name, (self._float(),), SMOOTH[name])

    def _kinked(self) -> Step:
        name = self.random.choice(list(KINKED))
        return Step(name, (self._float(),), KINKED[name], lambda x: float(np.abs(x).min(initial=1.0)))

    def _binary(self) -> Step:
        name, a = self.random.choice(list(BINARY)), self._float()
        return Step(name, (a, self._partner(a)), BINARY[name])

    def _tied(self) -> Step:
        name, a = self.random.choice(list(TIED)), self._float()
        return Step(name, (a, self._partner(a)), TIED[name], lambda a, b: float(np.abs(a - b).min(initial=1.0)))

    def _where(self) -> Step | None:
        a = self._float()
        condition = self._pick(lambda v: v.dtype == BOOL and v.shape in (self.values[a].shape, (), (1,)))
        return None if condition is None else Step("where", (condition, a, self._partner(a)), ops.where)

    def _axes(self, rank: int) -> Any:
        choice = self.random.choice(["all", "one", "some"])
        if choice == "all" or not rank:
            return None
        if choice == "one":
            return self.random.randrange(-rank, rank)
        return tuple(a for a in range(rank) if self.random.random() < 0.6)

    def _reduction(self) -> Step:
        i = self._float()
        axes, keep = self._axes(self.values[i].ndim), self.random.random() < 0.4
        name = self.random.choice(["sum", "sum", "mean", "max", "min", "prod"])
        label = f"{name} {axes}{' kept' if keep else ''}"
        if name == "prod":
            return Step(label, (i,), lambda x: ops.prod(ops.tanh(x) + 1.5, axes, keep))
        if name == "mean":
            return Step(label, (i,), lambda x: ops.sum(x, axes, keep) * (max(ops.sum(x, axes).size, 1) / max(x.size, 1)))
        if name == "sum":
            return Step(label, (i,), lambda x: ops.sum(x, axes, keep))
        function = ops.max if name == "max" else ops.min
        single = axes if not isinstance(axes, tuple) else None
        return Step(label, (i,), lambda x: function(x, single, keep), lambda x: _gap_of_extreme(x, single))

    def _arg_extreme(self) -> Step:
        i = self._float()
        rank = self.values[i].ndim
        axis = self.random.randrange(rank) if rank and self.random.random() < 0.7 else None
        function = self.random.choice([ops.argmax, ops.argmin])
        return Step(f"{function.__name__} {axis}", (i,), lambda x: function(x, axis), lambda x: _gap_of_extreme(x, axis))

    def _scan(self) -> Step | None:
        i = self._float()
        rank = self.values[i].ndim
        if not rank:
            return None
        axis = self.random.randrange(rank)
        if self.random.random() < 0.5:
            return Step(f"cumsum {axis}", (i,), lambda x: ops.cumsum(x, axis))
        return Step(f"cumprod {axis}", (i,), lambda x: ops.cumprod(ops.tanh(x) + 1.2, axis))

    def _reshaped(self) -> Step:
        draw = self.random
        i = self._pick(lambda v: True)
        assert i is not None
        shape = self.values[i].shape
        rank = len(shape)
        kind = draw.choice(["flat", "unit", "transpose", "broadcast", "flip", "slice", "factor", "pad", "step"])
        if kind == "flat":
            return Step("reshape flat", (i,), lambda x: ops.reshape(x, -1))
        if kind == "unit":
            at = draw.randint(0, rank)
            return Step(f"expand {at}", (i,), lambda x: ops.reshape(x, (*shape[:at], 1, *shape[at:])))
        if kind == "transpose":
            axes = tuple(draw.sample(range(rank), rank))
            return Step(f"transpose {axes}", (i,), lambda x: ops.transpose(x, axes))
        if kind == "broadcast":
            target = (draw.randint(1, 3), *(draw.randint(2, 4) if n == 1 else n for n in shape))
            return Step(f"broadcast {target}", (i,), lambda x: ops.broadcast_to(x, target))
        if kind == "flip":
            flipped = [a for a in range(rank) if draw.random() < 0.6]
            return Step(f"flip {flipped}", (i,), lambda x: ops.flip(x, flipped))
        if kind == "factor":
            size = self.values[i].size
            first = draw.choice([k for k in range(1, max(size, 1) + 1) if size % k == 0])
            return Step(f"reshape {first}", (i,), lambda x: ops.reshape(x, (first, -1)) if size else x)
        if kind == "pad" and self.values[i].type.is_float:
            low, high, inner = ([draw.randint(0, 2) for _ in shape] for _ in range(3))
            return Step(f"pad {low} {high} {inner}", (i,), lambda x: ops.pad(x, low, high, inner))
        slices = [self._slice(n) for n in shape]
        return Step(f"slice {slices}", (i,), lambda x: ops.slice_(x, slices))

    def _slice(self, n: int) -> slice:
        draw = self.random
        kind = draw.random()
        if kind < 0.4:
            return slice(None)
        if kind < 0.7:
            start = draw.randint(0, n)
            return slice(start, draw.randint(start, n))
        return slice(None, None, draw.choice([-2, -1, 2, 3]))

    def _index_array(self, n: int) -> Array:
        """Positions in an axis of size n: negative ones, and the same ones, more than once."""
        return self.numbers.integers(-n, n, self.random.choice([(3,), (5,), (2, 2)]))

    def _indexed(self) -> Step | None:
        draw = self.random
        i = self._float()
        shape = self.values[i].shape
        if not shape or 0 in shape:
            return None
        kind = draw.choice(["int", "array", "computed"])
        if kind == "int":
            at = draw.randrange(-shape[0], shape[0])
            return Step(f"[{at}]", (i,), lambda x: ops.getitem(x, at))
        if kind == "array":
            index = as_operand(self._index_array(shape[0]))
            return Step("[array]", (i,), lambda x: ops.getitem(x, index))
        where = self._pick(lambda v: v.dtype.kind == "i" and v.ndim <= 1)
        if where is None:
            return None
        return Step("[computed]", (i, where), lambda x, k: ops.getitem(x, ops.remainder(k, shape[0])))

    def _written(self) -> Step | None:
        draw = self.random
        i = self._float()
        shape = self.values[i].shape
        if not shape or 0 in shape:
            return None
        source = self._partner(i)
        function = draw.choice([ops.setitem, ops.additem])
        label = function.__name__
        if draw.random() < 0.5:
            at = draw.randrange(-shape[0], shape[0])
            return Step(f"{label} {at}", (i, source), lambda x, y: function(x, at, ops.sum(y) * 0.1))
        some = self.numbers.permutation(shape[0])[: max(1, shape[0] // 2)]  # each once: which of two writes wins is unspecified
        index = as_operand(some if label == "setitem" else self._index_array(shape[0]))
        return Step(f"{label} array", (i, source), lambda x, y: function(x, index, ops.sum(y) * 0.1))

    def _joined(self) -> Step | None:
        i = self._float()
        shape = self.values[i].shape
        if not shape:
            return None
        axis = self.random.randrange(len(shape))
        rest = shape[:axis] + shape[axis + 1 :]
        j = self._pick(lambda v: v.type.is_float and v.ndim == len(shape) and v.shape[:axis] + v.shape[axis + 1 :] == rest)
        return Step(f"concatenate {axis}", (i, j if j is not None else i), lambda a, b: ops.concatenate([a, b, a * 0.5], axis))

    def _product(self) -> Step | None:
        i = self._pick(lambda v: v.type.is_float and v.ndim >= 1)
        if i is None:
            return None
        inner = self.values[i].shape[-1]
        scale = 1.0 / max(inner, 1)

        def fits(v: Operand) -> bool:
            return v.type.is_float and ((v.ndim == 1 and v.shape[0] == inner) or (v.ndim >= 2 and v.shape[-2] == inner))

        j = self._pick(fits)
        if j is not None and self.random.random() < 0.7:
            return Step("matmul", (i, j), lambda a, b: (a @ b) * scale)
        if self.values[i].ndim == 1:
            return Step("dot itself", (i,), lambda a: (a @ a) * scale)
        return Step("gram", (i,), lambda a: (a @ ops.transpose(a, (*range(a.ndim - 2), a.ndim - 1, a.ndim - 2))) * scale)

    def _cast(self) -> Step:
        i = self._pick(lambda v: True)
        assert i is not None
        if self.values[i].type.is_float and self.random.random() < 0.4:
            to_int = lambda x: ops.cast(ops.floor(x * 2.0), I64)  # noqa: E731
            return Step("floor to int", (i,), to_int, lambda x: float(np.abs(x * 2 - np.rint(x * 2)).min(initial=1.0)))
        if self.values[i].type.is_float and self.random.random() < 0.5:
            return Step("cast f32", (i,), lambda x: ops.cast(x, F32))
        return Step("cast f64", (i,), lambda x: ops.cast(x, F64))

    def _integers(self) -> Step | None:
        draw = self.random
        i = self._pick(lambda v: v.dtype.kind == "i")
        if i is None:
            return None
        shape, dtype = self.values[i].shape, self.values[i].dtype
        j = self._pick(lambda v: v.shape == shape and v.dtype == dtype)
        assert j is not None
        table: dict[str, Callable[[Operand, Operand], Operand]] = {
            "add": ops.add,
            "sub": ops.sub,
            "mul": ops.mul,
            "floor_divide": ops.floor_divide,
            "remainder": ops.remainder,
            "and": ops.bitwise_and,
            "or": ops.bitwise_or,
            "xor": ops.bitwise_xor,
            "shift": lambda a, b: ops.left_shift(a, ops.bitwise_and(b, 1)),
            "maximum": ops.maximum,
            "equal": ops.equal,
            "less": ops.less,
            "sum": lambda a, b: ops.sum(a),
            "abs": lambda a, b: abs(a),
            "plus float": lambda a, b: a * 0.5,
        }
        name = draw.choice(list(table))
        return Step(f"int {name}", (i, j), table[name])

    def _bools(self) -> Step | None:
        i = self._pick(lambda v: v.dtype == BOOL)
        if i is None:
            return None
        shape = self.values[i].shape
        j = self._pick(lambda v: v.shape == shape and v.dtype == BOOL)
        assert j is not None
        table: dict[str, Callable[[Operand, Operand], Operand]] = {
            "and": ops.logical_and,
            "or": ops.logical_or,
            "xor": ops.logical_xor,
            "not": lambda a, b: ops.logical_not(a),
            "any": lambda a, b: ops.any(a),
            "all": lambda a, b: ops.all(a),
            "count": lambda a, b: ops.sum(a),
        }
        name = self.random.choice(list(table))
        return Step(f"bool {name}", (i, j), table[name])

    def _created(self) -> Step | None:
        draw = self.random
        kind = draw.choice(["arange", "one_hot", "full"])
        if kind == "arange":
            n = draw.choice([3, 4, 7])
            return Step(f"arange {n}", (), lambda: ops.arange(n, dtype=F64) * 0.25)
        if kind == "full":
            i = self._float()
            shape: Sequence[int] = self.values[i].shape
            return Step("full like", (i,), lambda x: x * 0.0 + ops.full(shape, 0.75))
        i2 = self._pick(lambda v: v.dtype.kind == "i" and v.ndim <= 1)
        return None if i2 is None else Step("one_hot", (i2,), lambda k: ops.one_hot(ops.remainder(k, 5), 5))
