"""Derivative and batching rules compute with operators and the functions of `ops`: NumPy's methods belong to the tracer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import adjit.ir.ops

FOLDER = Path(adjit.ir.ops.__file__).parent
RULES = {"vjp", "jvp", "batch", "pull", "push"}
METHODS = {name for name in dir(np.ndarray) if not name.startswith("_") and callable(getattr(np.ndarray, name))}


def method_calls(path: Path) -> Iterator[str]:
    for rule in ast.walk(ast.parse(path.read_text())):
        if isinstance(rule, ast.FunctionDef) and rule.name in RULES:
            for node in ast.walk(rule):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
                    owner = ast.unparse(node.func.value)
                    if owner not in ("self", "np", "math"):
                        yield f"{path.name}:{node.lineno}: {ast.unparse(node.func)}"


@pytest.mark.parametrize("path", sorted(FOLDER.rglob("*.py")), ids=lambda p: p.stem)
def test_rules_call_no_method_of_traced_values(path: Path) -> None:
    assert not list(method_calls(path))
