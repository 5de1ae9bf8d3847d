"""Draws programs by running them: a statement is kept if NumPy runs it, its guards hold, and its result is small and finite.

`make_program(seed)` returns the same program for the same seed. The `grammar_*` files define the kinds of statements: each has a list of
(weight, function of a `Draw`); a function returns a `Node`, or None if nothing in scope fits.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeAlias

import numpy as np

from tests.programs.program import Node, Program, line
from tests.programs.reference import Calls, Cell, numpy_side

Rule: TypeAlias = tuple[float, "Callable[[Draw], Node | None]"]

MAX_SIZE = 200
MAX_CALLS = 500  # of mapped functions, by one statement
MAX_VALUE = 30.0
MAX_INTEGER = 1 << 20
SHAPES: list[tuple[int, ...]] = [
    (), (1,), (2,), (3,), (5,), (8,), (17,), (0,), (1, 1), (1, 3), (3, 1), (2, 3), (3, 3), (4, 4), (0, 3), (3, 0), (5, 8),
    (2, 1, 3), (2, 3, 4), (1, 1, 1), (2, 0, 3), (1, 4, 1), (1, 5, 2), (2, 4, 4, 1), (1, 3, 3, 2), (70, 2), (33,),
]  # fmt: skip
DTYPES = ["f8"] * 8 + ["f4"] * 3 + ["i8", "i8", "i4", "i1", "u1", "i2", "u2", "u4", "?"]


class Draw:
    """The state of a program that is being drawn: the names in scope, with their values."""

    def __init__(self, random: Random, rules: Sequence[Rule], dtypes: Sequence[str] = DTYPES) -> None:
        self.random = random
        self.dtypes = dtypes  # of inputs after the first, which is of floats
        self.numbers = np.random.default_rng(random.getrandbits(64))
        self.rules = rules
        self.env: dict[str, Any] = {}
        self.order: list[str] = []  # names in scope, the newest last
        self.names = 0
        self.depth = 0

    # ---- names and values

    def fresh(self, prefix: str = "v") -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def shape(self, name: str) -> tuple[int, ...]:
        return np.shape(self.env[name])

    def dtype(self, name: str) -> np.dtype[Any]:
        return np.asarray(self.env[name]).dtype

    def code(self, name: str) -> str:
        """The source text of a dtype."""
        return self.dtype(name).str[1:].replace("b1", "?")

    def pick(self, fits: Callable[[Any], bool] = lambda v: True) -> str | None:
        """A name whose value fits; newer names are more likely."""
        found = [name for name in self.order if fits(self.env[name])]
        if not found:
            return None
        return self.random.choice(found[-3:] if self.random.random() < 0.7 else found)

    def array(self, kinds: str = "f", rank: int | None = None, least: int = 0, strong: bool = True) -> str | None:
        """An array of one of these kinds of dtype, of a rank, or of at least so many axes."""

        def fits(v: Any) -> bool:
            if isinstance(v, list | Cell) or (strong and not isinstance(v, np.ndarray | np.generic)):
                return False
            return np.asarray(v).dtype.kind in kinds and np.ndim(v) >= least and (rank is None or np.ndim(v) == rank)

        return self.pick(fits)

    def partner(self, name: str, kinds: str = "fiub") -> str:
        """A name that broadcasts against a value; the value itself if there is no other."""

        def fits(v: Any) -> bool:
            if isinstance(v, list | Cell) or np.asarray(v).dtype.kind not in kinds:
                return False
            try:
                return len(np.broadcast_shapes(self.shape(name), np.shape(v))) <= 4
            except ValueError:
                return False

        return self.pick(fits) or name

    def choice(self, options: Sequence[Any]) -> Any:
        return self.random.choice(options)

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def number(self, low: float = -1.5, high: float = 1.5) -> float:
        return round(self.random.uniform(low, high), 3)

    # ---- statements

    def keep(self, node: Node, env: dict[str, Any] | None = None) -> bool:
        """Run a statement; whether its values will do. What it assigns is in scope then."""
        env = self.env if env is None else env
        names = dict(env)
        try:
            source = "\n".join(node.render(drawing=True)) + "\n"
            with Calls.at_most(MAX_CALLS):
                exec(compile(source, "<draw>", "exec"), names)
        except SyntaxError:
            raise
        except Exception:
            return False
        new = {k: v for k, v in names.items() if k not in env or env[k] is not v}
        new.pop("__builtins__", None)
        if not all(acceptable(v) for v in new.values()):
            return False
        certain = node.defines(self.depth == 0)
        env.update({k: v for k, v in new.items() if k in env or k in certain})
        self.order += [k for k in new if k in certain and k not in self.order and k[0] in "uvx"]
        return True

    def statement(self, rules: Sequence[Rule] | None = None, attempts: int = 30) -> Node | None:
        """A statement that was kept."""
        rules = self.rules if rules is None else rules
        for _ in range(attempts):
            (make,) = self.random.choices([rule for _, rule in rules], [weight for weight, _ in rules])
            node = make(self)
            if node is not None and self.keep(node):
                return node
        return None

    def assign(self, expression: str, *guards: str, flags: Sequence[str] = ()) -> Node:
        return line(f"{self.fresh()} = {expression}", *guards, flags=flags)


def acceptable(value: Any) -> bool:
    if isinstance(value, list | tuple | dict):
        return all(map(acceptable, value.values() if isinstance(value, dict) else value))
    if not isinstance(value, np.ndarray | np.generic | bool | int | float | complex):
        return True  # functions, variables, objects: their values are checked where they are used
    array = np.asarray(value)
    wide = array.dtype.itemsize > (16 if array.dtype.kind == "c" else 8)
    if array.dtype.kind not in "fiubc" or array.dtype == np.float16 or wide or array.size > MAX_SIZE or array.ndim > 4:
        return False
    most = MAX_VALUE if array.dtype.kind in "fc" else MAX_INTEGER
    return bool((np.abs(array.astype(complex if array.dtype.kind == "c" else float)) <= most).all())


def draw_input(d: Draw, k: int) -> Any:
    shape = d.choice(SHAPES)
    if k and d.chance(0.12):
        return d.choice([0.75, -1.25, 2, 3, 1, 0])  # a Python number, which is weak
    dtype = np.dtype("f8" if not k else d.choice(d.dtypes))
    if not k and d.chance(0.2):
        dtype = np.dtype("f4")
    if dtype.kind in "fc":
        return uniform(d, 1.5, shape, dtype)
    if dtype.kind == "b":
        return np.asarray(d.numbers.integers(0, 2, shape)).astype(dtype)
    return np.asarray(d.numbers.integers(0 if dtype.kind == "u" else -4, 7, shape)).astype(dtype)


def uniform(d: Draw, most: float, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    real = d.numbers.uniform(-most, most, shape)
    return np.asarray(real + 1j * d.numbers.uniform(-most, most, shape) if dtype.kind == "c" else real).astype(dtype)


def make_program(seed: int, rules: Sequence[Rule], dtypes: Sequence[str] = DTYPES) -> Program:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", DeprecationWarning)  # a statement that NumPy will refuse one day is not drawn
        for attempt in range(1000):
            program = attempted(seed, Draw(Random(f"{seed}.{attempt}"), rules, dtypes))
            if program is not None:
                return program
    raise AssertionError(f"no program for seed {seed}")


def attempted(seed: int, d: Draw) -> Program | None:
    random = d.random
    inputs = {f"x{k}": draw_input(d, k) for k in range(random.randint(1, 4))}
    variables = {}
    if d.chance(0.5):
        complex_too = any(np.dtype(dtype).kind == "c" for dtype in d.dtypes)
        dtype = np.dtype("c16" if complex_too and d.chance(0.5) else "f8")
        variables["w0"] = uniform(d, 1.0, d.choice([(), (1,), (3,), (2, 3)]), dtype)
    d.env = {**numpy_side(variables), **inputs}
    d.order = list(inputs)
    body = []
    for _ in range(random.randint(2, 10)):
        node = d.statement()
        if node is not None:
            body.append(node)
    results = [n for n in d.order if n.startswith("v") and isinstance(d.env[n], np.ndarray | np.generic)]
    if not results:
        return None
    outputs = tuple(dict.fromkeys([*results[-3:], *random.sample(results, min(2, len(results)))]))
    floats = tuple(n for n in outputs if d.dtype(n).kind == "f")
    if d.chance(0.08):
        body += early_return(d, outputs)
    program = Program(seed, inputs, variables, tuple(body), outputs, floats)
    return program if is_steady(program) else None


def early_return(d: Draw, outputs: Sequence[str]) -> list[Node]:
    """An early `return` that depends on the data, with results of the same types."""
    x, c = d.array("f"), d.number()
    if x is None:
        return []
    changed = [f"{n} * 0.5" if d.dtype(n).kind == "f" else n for n in outputs]
    return [Node("", (), ((f"if «apart(np.sum({x}), {c})»np.sum({x}) > {c}:", (line(f"return {''.join(f'{n}, ' for n in changed)}"),)),))]


def is_steady(program: Program) -> bool:
    """Whether the guards hold from the start and for nearby inputs, and results do not depend on the last digits of the inputs."""
    step = 1e-5 if program.single else 1e-7
    numbers = np.random.default_rng(program.seed % 2**32)
    wanted = None
    for k in range(3):
        moved = [nudged(v, 0.0 if not k else step, numbers) for v in program.inputs.values()]
        try:
            function = program.functions(numpy_side(program.variables), drawing=True)["program"]
            found = function(*moved)
            out = [np.asarray(v) for v in found]
        except Exception:
            return False
        if type(found) is not tuple or len(found) != len(program.outputs) or not all(map(acceptable, out)):
            return False
        if wanted is None:
            wanted = out
        for a, b in zip(out, wanted, strict=True):
            if a.shape != b.shape or a.dtype != b.dtype:
                return False
            kind = complex if b.dtype.kind == "c" else float
            allowed = 300 * step * (1.0 + np.abs(b.astype(kind)).max(initial=0.0)) if b.dtype.kind in "fc" else 0.0
            if not (np.abs(a.astype(kind) - b.astype(kind)) <= allowed).all():
                return False
    return True


def nudged(value: Any, step: float, numbers: np.random.Generator) -> Any:
    if type(value) is float:
        return value * (1 + step * float(numbers.uniform(-1, 1)))
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return (value * (1 + step * numbers.uniform(-1, 1, value.shape))).astype(value.dtype)
    return value
