"""Shared by the tests of Python source: a Func written, run, and compared with the interpreter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit.codegen.compile import compile_func
from adjit.ir.func import Func
from adjit.ir.interpreter import run, run_block
from adjit.ir.operand import Literal
from adjit.ir.source_module import write_module
from adjit.passes.autodiff.split import split
from adjit.passes.pipeline import OPTIMIZE, READABLE
from adjit.runtime.profile import walk
from adjit.runtime.source import Source


def assert_same_bits(got: Any, wanted: Sequence[Any], text: str) -> None:
    """The same types and bits; NaNs may differ in theirs."""
    found = got if isinstance(got, tuple) else () if got is None else (got,)
    assert len(found) == len(wanted), text
    for a, b in zip(found, wanted):
        if isinstance(b, list):
            assert_same_bits(tuple(a), b, text)
            continue
        a = np.asarray(a)
        assert (a.dtype, a.shape) == (b.dtype, b.shape), text
        same = (a == b) & (np.signbit(a) == np.signbit(b)) if a.dtype.kind == "f" else a == b
        assert np.all(same | ((a != a) & (b != b))), f"{a} is not {b}\n{text}"


def check_func(func: Func, arrays: Sequence[Any]) -> Source:
    """Check that the text of a Func has the results of the interpreter."""
    source = Source(write_module(func, func, None, {}))
    assert_same_bits(source(*(np.array(a) for a in arrays)), run(func, *arrays), source.text)
    return source


def interpreted(func: Func, given: Sequence[Any]) -> list[Any]:
    """The outputs of a Func whose parameters may be stacks, which `run` does not accept."""
    env: dict[int, Any] = {}
    run_block(func.block, given, env)
    return [x.array() if isinstance(x, Literal) else env[id(x)] for x in func.outputs()]


def check_halves(func: Func, arrays: Sequence[Any]) -> Source:
    """The same for the simplified halves of a traced Func, which is what users see."""
    simple = READABLE.run(func)
    forward, backward = split(simple)
    source = Source(write_module(simple, forward, backward, {}))
    if source.backward is None:  # one of the halves has nothing to do
        forward, backward = simple, None
    outputs = run(forward, *arrays)
    kept = dict(zip(map(id, forward.params), arrays)) | dict(zip(map(id, forward.outputs()), outputs))
    args = [np.array(a) for a in arrays]
    assert_same_bits(source.forward(*args), outputs, source.text)
    wanted = run(simple, *arrays)
    if backward is not None:
        given = [kept[id(p)] for p in backward.params]
        assert source.backward is not None
        assert_same_bits(source.backward(*given), interpreted(backward, given), source.text)
    assert_same_bits(source(*args), wanted, source.text)
    for a, b in zip(args, arrays, strict=True):
        np.testing.assert_array_equal(a, b, err_msg=f"an argument was changed\n{source.text}")
    return source


def check_native(func: Func, arrays: Sequence[Any], source: Source, native: Any = None) -> None:
    """Check that native code has the results of the text of a traced Func, up to rounding: results, then the new values of variables."""
    given = [np.array(a) for a in arrays]
    wanted = source(*(np.array(a) for a in arrays))
    results = (native or compile_func(OPTIMIZE.run(func), traced=func))(given)
    variables = dict(zip(map(id, func.params), given))  # native code writes them in place
    found = [*results, *(variables[id(param)] for param, _ in func.updates)]
    expected = wanted if isinstance(wanted, tuple) else () if wanted is None else (wanted,)
    assert len(found) == len(expected), source.text
    single = any(r.type.dtype in (np.float32, np.complex64) for top in func.stmts for s in walk(top) for r in s.results)
    for a, b in zip(map(np.asarray, found), map(np.asarray, expected)):
        assert (a.dtype, a.shape) == (b.dtype, b.shape), source.text
        inexact = b.dtype.kind in "fc"
        scale = float(np.abs(b[np.isfinite(b)]).max(initial=0.0)) if inexact else 0.0
        allowed = (2e-3 if single else 1e-7) * max(1.0, scale)
        same = (a == b) | ((a != a) & (b != b))
        with np.errstate(invalid="ignore"):
            assert np.all(same | (np.abs(a - b) <= allowed if inexact else False)), f"{a} is not {b}\n{source.text}"
