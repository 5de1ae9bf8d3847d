"""Parameters of TensorFlow's functions and constructors: which ones `adjit.tf` accepts, in which order, and their effects.

`parameters.txt` lists those of TensorFlow 2.21 for every public name that `adjit.tf` has; a `/` precedes those that are given by name
alone. A parameter that is missing here raises a TypeError that names it; `MISSING` says which are. What is accepted has an effect, or is on
the list `IDLE` of those that cannot change a result.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import adjit.tf as tf
from adjit.tf.keras.options import ONLY

FOLDER = Path(__file__).parent
COMPAT = FOLDER.parents[1] / "compat"


def rows(file: str) -> dict[str, list[str]]:
    lines = (FOLDER / file).read_text().splitlines()
    return {name: names.split() for name, _, names in (line.partition(":") for line in lines if line)}


TABLE = rows("parameters.txt")
MISSING = {name: set(names) for name, names in rows("parameters_missing.txt").items()}

# parameters that cannot change a result: names, hints on speed and devices, and how an error is printed
IDLE = set((FOLDER / "parameters_idle.txt").read_text().split())


def found(name: str) -> Any:
    value: Any = tf
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


def signatures(value: Any) -> Iterator[inspect.Signature]:
    """The signature of a function; for a constructor, also those to which it passes other arguments."""
    if not isinstance(value, type):
        own = inspect.signature(value)
        yield own.replace(parameters=[p for name, p in own.parameters.items() if name != "self"])
        return
    for cls in value.__mro__:
        if "__init__" in vars(cls) and cls is not object:
            own = inspect.signature(vars(cls)["__init__"])
            yield own.replace(parameters=list(own.parameters.values())[1:])
            if not any(p.kind is p.VAR_KEYWORD for p in own.parameters.values()):
                return
    if "__init__" not in vars(value) or value.__new__ is not object.__new__:
        yield inspect.signature(value)


def accepted(value: Any) -> set[str]:
    names = {p.name for signature in signatures(value) for p in signature.parameters.values()}
    if isinstance(value, type) and issubclass(value, tf.keras.layers.Layer):
        names |= {f"{v}_{what}" for v in (*value.regularized, "activity") for what in ("regularizer", "constraint")} | set(ONLY)
    if isinstance(value, type) and issubclass(value, tf.keras.losses.Loss.__mro__[2]):
        names |= set(value.option_names())
    return names


@pytest.mark.parametrize("name", TABLE)
def test_parameters_are_accepted(name: str) -> None:
    missing = {p for p in TABLE[name] if p != "/"} - accepted(found(name))
    assert missing == MISSING.get(name, set())


@pytest.mark.parametrize("name", TABLE)
def test_positions_are_those_of_tensorflow(name: str) -> None:
    """An argument by position has its meaning in TensorFlow, or is refused."""
    theirs = TABLE[name][: TABLE[name].index("/")] if "/" in TABLE[name] else TABLE[name]
    signature = next(signatures(found(name)))
    ours = [p.name for p in signature.parameters.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    assert [pair for pair in zip(theirs, ours, strict=False) if pair[0] != pair[1]] == []


def unused(path: Path) -> Iterator[tuple[str, str]]:
    """Functions and their parameters that the body does not mention."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *filter(None, [node.args.vararg, node.args.kwarg])]
            body = [stmt for stmt in node.body if not (isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant))]
            read = {n.id for stmt in body for n in ast.walk(stmt) if isinstance(n, ast.Name)}
            if body and "locals" not in read:
                yield from ((node.name, a.arg) for a in args if a.arg not in read and a.arg not in ("self", "cls"))


# a shape of unknown rank ignores the other shape in a comparison
@pytest.mark.parametrize("path", sorted(p for p in COMPAT.glob("*.py") if p.stem != "shape"), ids=lambda p: p.stem)
def test_parameters_have_an_effect(path: Path) -> None:
    assert [f"{function}({name}=)" for function, name in unused(path) if name not in IDLE] == []
