"""CPython's own tests of control flow, scopes, classes and exceptions: with every function rewritten and nothing traced, they still pass.

They come with the running interpreter (`test`), where it was installed with them. All modules run with ADJIT_CPYTHON_TESTS=1, in a process
each; two run always.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import subprocess
import sys
import unittest
from types import CellType, FunctionType
from typing import Any

import pytest

QUICK = ["test_augassign", "test_with"]
MODULES = [
    "test_augassign", "test_binop", "test_bool", "test_class", "test_compare", "test_contains", "test_context", "test_contextlib",
    "test_decorators", "test_defaultdict", "test_deque", "test_descr", "test_dict", "test_dictcomps", "test_dictviews", "test_enum",
    "test_enumerate", "test_exception_hierarchy", "test_exception_variations", "test_exceptions", "test_extcall", "test_fstring",
    "test_funcattrs", "test_functools", "test_generator_stop", "test_generators", "test_genexps", "test_grammar", "test_int", "test_iter",
    "test_itertools", "test_keywordonlyarg", "test_list", "test_listcomps", "test_named_expressions", "test_opcodes", "test_operator",
    "test_ordered_dict", "test_patma", "test_pow", "test_property", "test_raise", "test_range", "test_scope", "test_set", "test_setcomps",
    "test_slice", "test_super", "test_tuple", "test_typechecks", "test_unary", "test_unpack", "test_unpack_ex", "test_userdict",
    "test_userlist", "test_with", "test_yield_from", "test_global", "test_baseexception", "test_collections", "test_heapq", "test_bisect",
]  # fmt: skip
# Tests that inspect code, frames, reference counts, or names of variables: they detect the rewriting.
INTROSPECTION = {
    "test_generators": {"test_name"},
    "test_descr": {"test_slots", "test_special_method_lookup"},
    "test_exceptions": {"test_recursion_in_except_handler", "test_missing_lineno_shows_as_none"},
    "test_funcattrs": {"test___builtins__", "test___closure__", "test___qualname__", "test_copying___code__"},
    "test_super": {"test_obscure_super_errors"},
    "test_patma": {
        "test_default_capture", "test_default_wildcard", "test_no_default", "test_only_default_capture", "test_only_default_wildcard",
        "test_unreachable_code",
    },
}  # fmt: skip

needed = pytest.mark.skipif(importlib.util.find_spec("test.support") is None, reason="this Python came without its `test` package")


def rewritten(function: FunctionType) -> FunctionType:
    """Return the function as it would run in a trace; unchanged if it has no source."""
    from adjit.tracer.autograph import convert
    from adjit.tracer.autograph.source import NoSource

    try:
        node = convert.rewritten(function)
    except NoSource:
        return function
    code = convert.renamed(convert.compiled(node, function), function.__code__)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells[convert.AG] = CellType(convert.operators)
    out = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, tuple(cells[n] for n in code.co_freevars))
    out.__kwdefaults__ = function.__kwdefaults__
    out.__dict__.update(function.__dict__)
    return out


def outcomes(module: str, rewrite: bool) -> dict[str, str]:
    """Each test of a module, and how it ended."""
    loaded: Any = importlib.import_module(f"test.{module}")
    if rewrite:
        for value in list(vars(loaded).values()):
            if isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == loaded.__name__:
                for name, member in list(vars(value).items()):
                    if isinstance(member, FunctionType) and name.startswith("test"):
                        setattr(value, name, rewritten(member))
    result = unittest.TestResult()
    names: list[str] = []

    def note(test: unittest.TestCase) -> None:
        names.append(test.id())

    result.startTest = note  # type: ignore[method-assign]
    unittest.defaultTestLoader.loadTestsFromModule(loaded).run(result)
    out = dict.fromkeys(names, "passed")
    for how, found in (("failed", result.failures), ("error", result.errors), ("skipped", result.skipped)):
        out.update((test.id(), how) for test, _ in found)
    return out


def run_apart(module: str, rewrite: bool) -> dict[str, str]:
    code = f"import json, sys; from tests.autograph.test_cpython import outcomes; json.dump(outcomes({module!r}, {rewrite}), sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    out: dict[str, str] = json.loads(done.stderr.splitlines()[-1])
    return out


@needed
@pytest.mark.parametrize("module", MODULES if os.environ.get("ADJIT_CPYTHON_TESTS") else QUICK)
def test_rewritten_functions_do_the_same(module: str) -> None:
    if importlib.util.find_spec(f"test.{module}") is None:
        pytest.skip(f"this Python has no test.{module}")
    ours, theirs = run_apart(module, True), run_apart(module, False)
    leave = INTROSPECTION.get(module, set())
    compared = {name: how for name, how in theirs.items() if name.rpartition(".")[2] not in leave}
    different = {name: (how, ours.get(name)) for name, how in compared.items() if ours.get(name) != how}
    assert not different
