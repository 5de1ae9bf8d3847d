"""Examples in docstrings print what they show, and every public name has an example."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import adjit as aj

SKIPPED = ("adjit.__main__", "adjit.explore", "adjit.tune")  # scripts
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [m.name for m in pkgutil.walk_packages(aj.__path__, "adjit.") if m.name not in SKIPPED]
NEURAL = [aj.nn, *(getattr(aj.nn, name) for name in aj.nn.__all__ if isinstance(getattr(aj.nn, name), ModuleType))]
PUBLIC = [aj, aj.linalg, aj.random, aj.special, *NEURAL]


def created_by_factories(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Functions that a module assigns, whose own module is that of the factory: doctest would skip them."""
    for name, value in vars(module).items():
        own = isinstance(value, FunctionType) and value.__name__ == name and value.__module__.startswith("adjit")
        if own and getattr(importlib.import_module(value.__module__), name, None) is not value:
            yield name, value


def examples(module: ModuleType) -> list[doctest.DocTest]:
    names = vars(module) | {"np": np, "aj": aj, "__name__": "__main__"}  # code of a module of adjit would not be converted
    finder = doctest.DocTestFinder()
    found = finder.find(module, globs=names)
    for name, value in created_by_factories(module):
        found += finder.find(value, f"{module.__name__}.{name}", module=False, globs=names)
    return found


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    failed: list[str] = []
    for test in examples(importlib.import_module(name)):
        runner = doctest.DocTestRunner(verbose=False, optionflags=OPTIONS)  # by default, it takes the -v of pytest for its own
        runner.run(test, out=failed.append)
    assert not failed, "".join(failed)


def public_callables() -> Iterator[tuple[str, Any]]:
    for module in PUBLIC:
        for name in module.__all__:
            value = getattr(module, name)
            if callable(value) and value.__module__.startswith("adjit") and not (isinstance(value, type) and issubclass(value, Exception)):
                yield f"{module.__name__}.{name}", value


def test_every_public_function_says_what_it_returns() -> None:
    functions = [(name, value) for name, value in public_callables() if not isinstance(value, type) and returns(value)]
    silent = [name for name, value in functions if "return" not in summary(value)]
    assert silent == []


def returns(value: Any) -> bool:
    return inspect.signature(value).return_annotation not in ("None", None)


def summary(value: Any) -> str:
    return (inspect.getdoc(value) or "").partition("\n\n")[0].lower()


def test_every_public_name_has_an_example() -> None:
    bare = [name for name, value in public_callables() if ">>> " not in (value.__doc__ or "")]
    assert bare == []


def test_the_examples_of_public_names_are_among_those_that_run() -> None:
    run = {each.source for name in MODULES for test in examples(importlib.import_module(name)) for each in test.examples}
    parser = doctest.DocTestParser()
    passed_over = [name for name, value in public_callables() if not {e.source for e in parser.get_examples(value.__doc__)} <= run]
    assert passed_over == []


@pytest.mark.parametrize("module", [aj, aj.nn, aj.random, aj.linalg, aj.special], ids=lambda module: module.__name__)
def test_every_public_name_is_documented(module: ModuleType) -> None:
    bare = [name for name in module.__all__ if callable(getattr(module, name)) and not (getattr(module, name).__doc__ or "").strip()]
    assert bare == []


def test_all_names_are_there() -> None:
    assert sorted(set(aj.__all__)) == sorted(aj.__all__), "a name is listed twice"
    for name in aj.__all__:
        getattr(aj, name)
