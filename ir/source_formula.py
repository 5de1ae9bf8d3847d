"""Python functions for ops that are defined by a formula on an `Emitter`: the formula is run once, and every step becomes a line.

Such ops evaluate their formula with `HostEmitter`; the lines call the same NumPy functions in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .errors import UnsupportedError
from .ops.maps import Map
from .records import NamedTuple
from .source_text import literal, unparse
from .types import BOOL, F32, DType

PREDICATES = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
FUNCTIONS = {
    "exp": "np.exp", "exp_bounded": "np.exp", "log": "np.log", "log_normal": "np.log", "log1p": "np.log1p",
    "pow": "np.power", "pow_short": "np.power", "sin": "np.sin", "cos": "np.cos", "tan": "np.tan",
    "erf": "erf", "logit": "logit",
}  # fmt: skip
SPLIT = 2.0**27 + 1.0  # splits a double into halves whose products are exact


class Name(NamedTuple):
    """A register: a variable, or a constant."""

    text: str
    dtype: DType


class Script:
    """Implements `Emitter`; registers are names, and each operation writes a line."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.used: set[str] = set()
        self.indent = 1
        self.count = 0

    def line(self, text: str) -> None:
        self.lines.append(f"{'    ' * self.indent}{text}")

    def put(self, expression: str, dtype: DType) -> Name:
        self.count += 1
        name = Name(f"v{self.count}", dtype)
        self.line(f"{name.text} = {expression}")
        return name

    def const(self, dtype: DType, value: Any) -> Name:
        text = unparse(literal(dtype.type(value).item()))
        kind = "np.bool_" if dtype == BOOL else f"np.{dtype.name}"
        return Name(f"{kind}({text})", dtype)

    def like(self, x: Name, value: Any) -> Name:
        return self.const(x.dtype, value)

    def add(self, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} + {b.text}", a.dtype)

    def sub(self, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} - {b.text}", a.dtype)

    def mul(self, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} * {b.text}", a.dtype)

    def fdiv(self, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} / {b.text}", a.dtype)

    def neg(self, a: Name) -> Name:
        return self.put(f"-{a.text}", a.dtype)

    def mad(self, a: Name, b: Name, c: Name) -> Name:
        return self.put(f"{a.text} * {b.text} + {c.text}", a.dtype)

    def fma(self, a: Name, b: Name, c: Name) -> Name:
        """a * b + c with the exact product, as eager code computes it."""
        if a.dtype == F32:
            return self.put(f"np.float32({a.text} * np.float64(1.0) * {b.text} + {c.text})", F32)
        product = self.mul(a, b)
        parts = []
        for x in (a, b):
            scaled = self.put(f"{x.text} * {SPLIT}", x.dtype)
            high = self.put(f"{scaled.text} - ({scaled.text} - {x.text})", x.dtype)
            parts += [high.text, self.sub(x, high).text]
        a_high, a_low, b_high, b_low = parts
        first = self.put(f"{a_high} * {b_high} - {product.text} + {a_high} * {b_low} + {a_low} * {b_high}", a.dtype)
        error = self.put(f"{first.text} + {a_low} * {b_low}", a.dtype)
        exact = self.put(f"np.where(np.isfinite({error.text}), {error.text}, 0.0)", a.dtype)
        return self.put(f"{product.text} + {c.text} + {exact.text}", a.dtype)

    def fabs(self, a: Name) -> Name:
        return self.put(f"np.fabs({a.text})", a.dtype)

    def copysign(self, magnitude: Name, sign: Name) -> Name:
        return self.put(f"np.copysign({magnitude.text}, {sign.text})", magnitude.dtype)

    def sqrt(self, a: Name) -> Name:
        return self.put(f"np.sqrt({a.text})", a.dtype)

    def floor(self, a: Name) -> Name:
        return self.put(f"np.floor({a.text})", a.dtype)

    def ceil(self, a: Name) -> Name:
        return self.put(f"np.ceil({a.text})", a.dtype)

    def rint(self, a: Name) -> Name:
        return self.put(f"np.rint({a.text})", a.dtype)

    def trunc(self, a: Name) -> Name:
        return self.put(f"np.trunc({a.text})", a.dtype)

    def compare(self, predicate: str, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} {PREDICATES[predicate]} {b.text}", BOOL)

    def unordered(self, a: Name, b: Name) -> Name:
        return self.put(f"({a.text} != {a.text}) | ({b.text} != {b.text})", BOOL)

    def select(self, condition: Name, a: Name, b: Name) -> Name:
        return self.put(f"np.where({condition.text}, {a.text}, {b.text})", a.dtype)

    def and_(self, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} & {b.text}", a.dtype)

    def or_(self, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} | {b.text}", a.dtype)

    def xor(self, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} ^ {b.text}", a.dtype)

    def shl(self, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} << {b.text}", a.dtype)

    def shr(self, a: Name, b: Name) -> Name:
        return self.put(f"{a.text} >> {b.text}", a.dtype)

    def bitcast(self, a: Name, dtype: DType) -> Name:
        return self.put(f"{a.text}.view(np.{dtype.name})", dtype)

    def idiv(self, a: Name, b: Name) -> Name:
        return self.put(f"({a.text} - np.fmod({a.text}, {b.text})) // {b.text}", a.dtype)

    def irem(self, a: Name, b: Name) -> Name:
        return self.put(f"np.fmod({a.text}, {b.text})", a.dtype)

    def convert(self, a: Name, dtype: DType) -> Name:
        return self.put(f"{a.text}.astype(np.{dtype.name})", dtype)

    def call(self, function: str, *args: Name) -> Name:
        if function not in FUNCTIONS:
            raise UnsupportedError(f"{function}: a function without a NumPy counterpart")
        self.used.add(FUNCTIONS[function])
        return self.put(f"{FUNCTIONS[function]}({', '.join(a.text for a in args)})", args[0].dtype)

    def iterate(self, limit: int, state: Sequence[Name], step: Callable[..., tuple[Name, Sequence[Name]]]) -> list[Name]:
        current = [self.put(x.text, x.dtype) for x in state]
        finished = self.put("np.False_", BOOL)
        self.line(f"for _ in range({limit}):")
        self.indent += 1
        done, following = step(*current)
        for old, new in zip(current, following, strict=True):
            self.line(f"{old.text} = np.where({finished.text}, {old.text}, {new.text})")
        self.line(f"{finished.text} = {finished.text} | {done.text}")
        self.line(f"if np.all({finished.text}):")
        self.line("    break")
        self.indent -= 1
        return current

    def where_any(self, condition: Name, compute: Callable[[], Sequence[Name]], otherwise: Sequence[Name]) -> list[Name]:
        current = [self.put(x.text, x.dtype) for x in otherwise]
        self.line(f"if np.any({condition.text}):")
        self.indent += 1
        for old, new in zip(current, compute(), strict=True):
            self.line(f"{old.text} = np.where({condition.text}, {new.text}, {old.text})")
        self.indent -= 1
        return current

    def strict(self) -> Script:
        return self

    def index(self, axis: int) -> Name:
        raise UnsupportedError("a formula with positions")


def formula(op: Map, name: str, dtypes: Sequence[DType]) -> tuple[str, set[str]]:
    """The text of a function that computes an elementwise op, and the helpers that it calls."""
    script = Script()
    params = [Name(letter, dtype) for letter, dtype in zip("xyzw", dtypes)]
    result = op.scalar(script, *params)
    about = (type(op).__doc__ or "").strip().split("\n")[0]
    long = {line: f"{line}  # fmt: skip" for line in script.lines if len(line) > 88}
    head = [f"def {name}({', '.join(p.text for p in params)}):", f'    """{about}"""']
    return "\n".join([*head, *(long.get(line, line) for line in script.lines), f"    return {result.text}"]), script.used
