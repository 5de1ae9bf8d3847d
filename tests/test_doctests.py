"""What docstrings show is what happens, and no public name goes without one."""

from __future__ import annotations

import doctest
import importlib
from types import ModuleType

import pytest

import adjit as aj

MODULES = [
    "adjit.ir.types",
    "adjit.runtime.custom_gradient",
    "adjit.runtime.custom_jvp",
    "adjit.runtime.custom_vjp",
    "adjit.tracer.surface.trees",
    "adjit.runtime.function",
    "adjit.runtime.signatures",
    "adjit.runtime.tape",
    "adjit.runtime.tensor",
    "adjit.runtime.transforms",
    "adjit.runtime.variable",
    "adjit.runtime.vmap",
    "adjit.runtime.checkpoint",
    "adjit.tracer.control",
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    tests = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert tests.attempted > 0, "a module without examples does not belong into the list"
    assert tests.failed == 0


def test_every_public_name_is_documented() -> None:
    bare = [name for name in aj.__all__ if callable(getattr(aj, name)) and not (getattr(aj, name).__doc__ or "").strip()]
    assert bare == []


@pytest.mark.parametrize("module", [aj.nn, aj.random], ids=lambda module: module.__name__)
def test_every_public_name_of_a_module_is_documented(module: ModuleType) -> None:
    bare = [name for name in module.__all__ if callable(getattr(module, name)) and not (getattr(module, name).__doc__ or "").strip()]
    assert bare == []


def test_all_names_are_there() -> None:
    assert sorted(set(aj.__all__)) == sorted(aj.__all__), "a name is listed twice"
    for name in aj.__all__:
        getattr(aj, name)
