"""A random program: Python source as a user would write it, with the inputs that it is run on.

A program is a tree of `Node`s, so that it can be taken apart again: `shrink` leaves statements out. While it is drawn, guards run along
with it: conditions under which rounding cannot decide what the program does (no comparison of nearly equal numbers, no ties).
The finished source has none of them.
"""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import count
from types import CodeType
from typing import Any

import numpy as np

GUARD = re.compile(r"«(.*?)»")  # in the condition of a branch or loop: must hold whenever the condition is evaluated
ASSIGNED = re.compile(r"^(\w+) [-+*]?= ", re.MULTILINE)
OPEN = re.compile(r" range\([a-z]")  # a loop whose trip count is known only at run time
STATE = "state"  # reads a value that it assigned to a variable: this blocks gradients, so finite differences differ
TRACED = "traced"  # only for traced values: `y[i] = v`, and `np.array([x, y])`, which takes eager tensors out of the tape
OPAQUE = "opaque"  # no derivative where finite differences see one (stop_gradient)

_files = count()


@dataclass(frozen=True)
class Node:
    """A statement: lines, then headers with their blocks. A block without a header is a sequence of statements."""

    text: str = ""
    guards: tuple[str, ...] = ()  # must hold before the lines run
    parts: tuple[tuple[str, tuple[Node, ...]], ...] = ()
    flags: frozenset[str] = frozenset()

    def render(self, drawing: bool) -> Iterator[str]:
        if drawing:
            yield from (f"_need({guard})" for guard in self.guards)
        yield from self.text.splitlines()
        for header, block in self.parts:
            indent = "    " if header else ""
            yield from GUARD.sub(r"_need(\1) and " if drawing else "", header).splitlines()
            yield from (f"{indent}{line}" for node in block for line in node.render(drawing))

    def defines(self, outermost: bool = False) -> set[str]:
        """Names that are assigned after it for certain."""
        out = set(ASSIGNED.findall(self.text))
        inside = [(header, {name for node in block for name in node.defines()}) for header, block in self.parts]
        for header, names in inside:
            if not header:
                out |= names
            elif "def " in header:
                out.add(header[header.index("def ") + 4 : header.index("(", header.index("def "))])
            elif header.startswith("for ") and outermost and not OPEN.search(header):  # then there is a first iteration
                out |= set() if any(n.text in ("break", "continue") for n in self.walk()) else names
        if inside and inside[0][0].startswith("if ") and inside[-1][0] == "else:":
            out |= set.intersection(*(names for _, names in inside))
        return out

    def assigns(self) -> set[str]:
        """Names that any line of it assigns, whether or not it runs."""
        return {name for node in self.walk() for name in ASSIGNED.findall(node.text)}

    def walk(self) -> Iterator[Node]:
        yield self
        for _, block in self.parts:
            for node in block:
                yield from node.walk()


def line(text: str, *guards: str, flags: Sequence[str] = ()) -> Node:
    return Node(text, guards, (), frozenset(flags))


@dataclass(frozen=True)
class Program:
    seed: int
    inputs: Mapping[str, Any]  # arrays and Python numbers
    variables: Mapping[str, Any]
    body: tuple[Node, ...]
    outputs: tuple[str, ...]
    floats: tuple[str, ...] = field(default=())  # the outputs that the loss is computed from

    @property
    def flags(self) -> set[str]:
        return {flag for node in self.body for inner in node.walk() for flag in inner.flags}

    @property
    def single(self) -> bool:
        """Whether anything is of single precision, which sets how closely results can agree."""
        values = (*self.inputs.values(), *self.variables.values())
        texts = (inner.text + "".join(h for h, _ in inner.parts) for node in self.body for inner in node.walk())
        narrow = any(getattr(v, "dtype", None) in (np.float32, np.complex64, np.int16, np.uint16) for v in values)
        return narrow or any(word in text for text in texts for word in ("f4", "c8", "float32", "i2", "u2"))

    @property
    def differentiated(self) -> list[int]:
        """Positions of the inputs that have a gradient."""
        return [i for i, v in enumerate(self.inputs.values()) if type(v) is float or getattr(v, "dtype", np.dtype(int)).kind == "f"]

    def source(self, drawing: bool = False) -> str:
        names = ", ".join(self.inputs)
        body = [f"    {text}" for node in self.body for text in node.render(drawing)]
        terms = [f"np.sum(np.sin({name})) * {0.5 + 0.25 * k}" for k, name in enumerate(self.floats)]
        outputs = "".join(f"{name}, " for name in self.outputs)
        return "\n".join([
            f"def program({names}):", *body, f"    return {outputs}",
            "", "",
            f"def loss({names}):", f"    {outputs} = program({names})", f"    return {' + '.join(terms) or '0.0'}", "",
        ])  # fmt: skip

    def functions(self, namespace: Mapping[str, Any], drawing: bool = False) -> dict[str, Callable[..., Any]]:
        """`program` and `loss`, with these globals. The source is where tracebacks and AutoGraph look for it."""
        names: dict[str, Any] = {"__name__": "random_program", **namespace}
        exec(compiled(self.source(drawing), self.seed), names)
        return {key: names[key] for key in ("program", "loss")}

    def __str__(self) -> str:
        inputs = [f"{name} = {described(value)}" for name, value in self.inputs.items()]
        inputs += [f"{name} = aj.Variable({described(value)})" for name, value in self.variables.items()]
        return "\n".join([f"# seed {self.seed}", *inputs, "", self.source()])

    def without(self, **changes: Any) -> Program:
        return replace(self, **changes)


@lru_cache(maxsize=50)
def compiled(source: str, seed: int) -> CodeType:
    """The code of a program, with its source where tracebacks look for it. AutoGraph rewrites functions of the same code only once."""
    name = f"<program {seed}.{next(_files)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    if len(linecache.cache) > 4000:
        for old in [key for key in linecache.cache if key.startswith("<program ")][:-100]:
            del linecache.cache[old]
    return compile(source, name, "exec")


def described(value: Any) -> str:
    """An expression for a value: exact, so that a printed program can be run."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if not array.size:
            return f"np.zeros({array.shape}, {array.dtype.str[1:]!r})"
        return f"np.array({array.tolist()}, {array.dtype.str[1:]!r})"
    return repr(value)
