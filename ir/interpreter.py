"""Runs a Func at any stage on NumPy arrays: the oracle that every pass and the code generator are tested against."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from .errors import AdjitError, ShapeError
from .func import Block, Func, Stmt
from .operand import Literal, Operand, evaluate
from .ops.base import Array
from .ops.control import Region
from .specialize import sizes_in, specialize

Observe: TypeAlias = Callable[[Stmt, Sequence[Array], Sequence[Array]], None]  # a statement, its arguments, its results


def run(func: Func, *arrays: Array, observe: Observe | None = None) -> tuple[Array, ...]:
    """Return the results, then the saved values, then the new values of updated parameters. `observe` is called after each statement.

    The arrays give symbolic sizes their values.

    >>> run(func, x, y)            # doctest: +SKIP
    (array(3.0), array([1.0, 2.0]))
    """
    if len(arrays) != len(func.params):
        raise ShapeError(f"@{func.name} takes {len(func.params)} arrays, not {len(arrays)}")
    func = specialize(func, sizes_in(func, [np.shape(array) for array in arrays]))
    env: dict[int, Array] = {}
    for param, array in zip(func.params, arrays, strict=True):
        data = np.asarray(array)
        if data.shape != param.type.shape or data.dtype != param.type.dtype:
            raise ShapeError(f"@{func.name}: %{param.name or '?'} is {param.type}, got {data.dtype}{list(data.shape)}")
        env[id(param)] = data
    _run_stmts(func.block, env, observe)
    return tuple(_read(x, env) for x in func.outputs())


def run_block(block: Block, arrays: Sequence[Array], env: dict[int, Array], observe: Observe | None = None) -> tuple[Array, ...]:
    """Results, then saved values, of a region whose free values are in `env`."""
    env.update(zip(map(id, block.params), arrays, strict=True))
    _run_stmts(block, env, observe)
    return tuple(_read(x, env) for x in (*block.results, *block.saving))


class _Runner:
    """A block with its surrounding environment, as `Region.interpret` calls it."""

    def __init__(self, block: Block, env: dict[int, Array], observe: Observe | None) -> None:
        self.block = block
        self.env = env
        self.observe = observe
        self.saves = len(block.saving)

    def __call__(self, *arrays: Array) -> tuple[Array, ...]:
        return run_block(self.block, arrays, self.env, self.observe)


def _run_stmts(block: Block, env: dict[int, Array], observe: Observe | None) -> None:
    for stmt in block.stmts:
        arrays = [_read(a, env) for a in stmt.args]
        try:
            if isinstance(stmt.op, Region):
                out = stmt.op.interpret([_Runner(b, env, observe) for b in stmt.blocks], *arrays)
            else:
                out = evaluate(stmt.op, arrays, [a.type for a in stmt.args])
        except AdjitError as error:
            raise error.at(stmt.location) from None
        env.update(zip(map(id, stmt.results), out, strict=True))
        if observe is not None:
            observe(stmt, arrays, out)


def _read(operand: Operand, env: dict[int, Array]) -> Array:
    return operand.array() if isinstance(operand, Literal) else env[id(operand)]
