"""Finding the first NaN: which op produced it, forward or backward, and on which line of the user's code.

The traced program runs op by op in the interpreter. A NaN or infinity that reaches no result or variable (because a `where` masks it, say)
is not reported; otherwise, the error names the first op that produced one from finite numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adjit.ir.errors import NonFiniteError
from adjit.ir.func import Func, Stmt, Value
from adjit.ir.interpreter import run
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array
from adjit.ir.ops.control import Region
from adjit.ir.ops.maps import Map
from adjit.ir.records import NamedTuple
from adjit.passes.rewrite import operands_read

from .concrete import ConcreteFunction
from .signature import Signature


def check_finite(concrete: ConcreteFunction, signature: Signature) -> Any:
    """Return the call's result, computed op by op; raise NonFiniteError if a NaN or an infinity reaches a result or a variable."""
    func = concrete.program.func
    search = Search(func)
    arrays = concrete.convention.copies(signature.arrays, signature.stores, every=True)
    outputs = search.run(arrays)
    return concrete.finish([np.array(a, order="C") for a in outputs[: len(func.results)]])


class Origin(NamedTuple):
    """Where non-finite numbers were produced: a statement with its arguments and result, or a parameter."""

    stmt: Stmt | None
    arrays: Sequence[Array]
    result: Array
    name: str = ""


class Search:
    """One run, which tracks the origin of each non-finite value."""

    def __init__(self, func: Func) -> None:
        self.func = func
        self.origins: list[Origin] = []
        self.cause: dict[int, int] = {}  # id of a currently non-finite value -> index of its first origin

    def run(self, arrays: Sequence[Array]) -> tuple[Array, ...]:
        for param, array in zip(self.func.params, arrays, strict=True):
            if is_bad(array):
                self.begin(param, Origin(None, (), array, param.name or "?"))
        outputs = run(self.func, *arrays, observe=self.observe)
        causes = [self.cause.get(id(x), 0) for x, a in zip(self.func.outputs(), outputs, strict=True) if is_bad(a) and self.origins]
        if causes:
            raise self.error(self.origins[min(causes)])
        return outputs

    def begin(self, value: Operand, origin: Origin) -> None:
        self.cause[id(value)] = len(self.origins)
        self.origins.append(origin)

    def observe(self, stmt: Stmt, arrays: Sequence[Array], results: Sequence[Any]) -> None:
        for value, result in zip(stmt.results, results, strict=True):
            if not isinstance(result, np.ndarray) or not is_bad(result):
                self.cause.pop(id(value), None)
                continue
            known = [self.cause[id(x)] for x in operands_read(stmt) if id(x) in self.cause]
            if isinstance(stmt.op, Region):
                inner = [self.cause[id(y)] for block in stmt.blocks for y in block.results if id(y) in self.cause]
                self.cause[id(value)] = min([*known, *inner], default=0)
            elif known or any(is_bad(a) for a in arrays):  # a loop carry may be non-finite without a statement that produced it
                self.cause[id(value)] = min(known, default=0)
            else:
                self.begin(value, Origin(stmt, arrays, result))

    def error(self, origin: Origin) -> NonFiniteError:
        what, count = kind(origin.result), int((~np.isfinite(origin.result)).sum())
        share = f" in {count} of {origin.result.size} elements" if origin.result.size > 1 else ""
        stmt = origin.stmt
        if stmt is None:
            return NonFiniteError(f"@{self.func.name}: %{origin.name} was {what}{share} from the start").at(self.func.location)
        made = f"`{stmt.op.name}` gave {what}{share}{example(stmt, origin)}"
        if stmt.phase == "backward":
            behind = stmt.origin
            of = f"the adjoint of `{behind.op.name}`{named(behind)}" if behind is not None else "a gradient"
            return NonFiniteError(f"@{self.func.name}, backward, in {of}: {made}").at(stmt.location)
        return NonFiniteError(f"@{self.func.name}: {made}").at(stmt.location)


def is_bad(array: Array) -> bool:
    return array.dtype.kind in "fc" and not bool(np.isfinite(array).all())


def kind(array: Array) -> str:
    return "NaN" if bool(np.isnan(array).any()) else "an infinity"


def named(stmt: Stmt) -> str:
    name = stmt.results[0].name if stmt.results and isinstance(stmt.results[0], Value) else None
    return f" that made %{name}" if name else ""


def example(stmt: Stmt, origin: Origin) -> str:
    """Return the first offending element of an elementwise op, as text: `div(1.0, 0.0)`."""
    if not isinstance(stmt.op, Map):
        return ""
    at = tuple(np.argwhere(~np.isfinite(origin.result))[0])
    numbers = ", ".join(repr(np.broadcast_to(a, origin.result.shape)[at].item()) for a in origin.arrays)
    place = f" at {list(map(int, at))}" if at else ""
    return f"{place}: {stmt.op.name}({numbers})"
