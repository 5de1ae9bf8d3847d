"""Ops that few programs use are loaded by the first access, and keep their functions' names when their modules are imported directly."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

from adjit.ir import ops
from adjit.ir.ops import late
from adjit.ir.ops.base import REGISTRY


@pytest.mark.parametrize("module", late.FUNCTIONS)
def test_functions_of_late_modules(module: str) -> None:
    found = importlib.import_module(f"adjit.ir.ops.{module}")
    assert isinstance(found, ModuleType)
    assert sorted(found.__all__) == sorted(late.FUNCTIONS[module])
    for name in found.__all__:
        assert getattr(ops, name) is getattr(found, name)
        assert not isinstance(getattr(ops, name), ModuleType)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'solv'"):
        ops.solv


def test_all_ops_are_loaded_for_the_parser() -> None:
    late.load()
    assert {"cholesky", "solve_with", "argsort", "random_bits", "cumsum", "convolve"} <= REGISTRY.keys()


FRESH = """
import importlib, pkgutil
from adjit.ir import ops
from adjit.ir.ops import late
from adjit.ir.ops.base import REGISTRY

late.load()
loaded = set(REGISTRY)
for module in pkgutil.walk_packages(ops.__path__, "adjit.ir.ops."):
    importlib.import_module(module.name)
print(*sorted(set(REGISTRY) - loaded))
"""


def test_the_parser_of_a_new_process_finds_every_op() -> None:
    done = subprocess.run([sys.executable, "-c", FRESH], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
