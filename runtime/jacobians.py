"""Jacobians of recorded statements: one sweep computes all rows (reverse mode) or all columns (forward mode) at once.

The sweep is mapped with `vmap` over a basis of seeds, so it runs as one batched program for any number of rows. Owns the choice of mode and
the shapes; `tape` and `transforms` supply the statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias
from typing import Literal as OneOf

from adjit.ir import ops
from adjit.ir.errors import GradientError
from adjit.ir.func import Stmt
from adjit.ir.operand import Operand
from adjit.ir.ops.shape import move_lead
from adjit.ir.types import TensorType

from .internal import backpropagate, push_forward
from .tensor import tensor
from .vmap import vmap

Mode: TypeAlias = OneOf["forward", "reverse"]
Row: TypeAlias = list[Operand | None]


def jacobian_blocks(stmts: Sequence[Stmt], targets: Sequence[Operand], sources: Sequence[Operand], mode: Mode | None = None) -> list[Row]:
    """Return the derivatives of each target with respect to each source, of shape target.shape + source.shape; None if not connected.

    By default `mode` is the one that needs fewer sweeps: forward mode in a tie, reverse mode where forward mode is not available.
    """
    if mode not in (None, "forward", "reverse"):
        raise GradientError(f"mode is 'forward', 'reverse' or None (the cheaper one), not {mode!r}")
    if any(x.type.is_complex for x in (*targets, *sources)):
        mode = complex_mode(targets, sources, mode)
    tall = sum(s.type.size for s in sources) <= sum(t.type.size for t in targets)
    if mode == "forward" or (mode is None and tall):
        try:
            return _columns(stmts, targets, sources)
        except GradientError:
            if mode is not None:
                raise
    return [_rows(stmts, t, sources) for t in targets]


def complex_mode(targets: Sequence[Operand], sources: Sequence[Operand], mode: Mode | None) -> Mode:
    """Return the mode that yields complex derivatives: a sweep in the other mode sees the derivative of a real part only."""
    needed: Mode = "reverse" if any(s.type.is_complex for s in sources) else "forward"
    if any(t.type.is_complex for t in targets) and needed == "reverse":
        return mode or "reverse"
    if mode == "reverse":
        return mode  # the caller wants the derivatives of real parts
    if mode not in (None, needed):
        raise GradientError(f"a Jacobian between complex and real numbers is computed in {needed} mode, not {mode!r}")
    return needed


def batch_jacobian_block(stmts: Sequence[Stmt], target: Operand, source: Operand) -> Operand | None:
    """Return the derivative of each example of the target with respect to the same example of the source.

    Its shape is [b, *target.shape[1:], *source.shape[1:]].
    """
    count, *rest = target.type.shape
    each = target.type.with_shape(rest)

    def pull(seed: Any) -> Row:
        return backpropagate(stmts, [target], [ops.broadcast_to(seed, target.type.shape)], [source])

    (found,) = _mapped(pull, each)
    if found is None:
        return None
    return ops.reshape(move_lead(found, 1), (count, *rest, *source.type.shape[1:]))


def _rows(stmts: Sequence[Stmt], target: Operand, sources: Sequence[Operand]) -> Row:
    found = _mapped(lambda seed: backpropagate(stmts, [target], [seed], sources), target.type)
    return [None if d is None else ops.reshape(d, target.type.shape + s.type.shape) for d, s in zip(found, sources, strict=True)]


def _columns(stmts: Sequence[Stmt], targets: Sequence[Operand], sources: Sequence[Operand]) -> list[Row]:
    out: list[Row] = [[] for _ in targets]
    for source in sources:

        def push(seed: Any, source: Operand = source) -> Row:
            known = push_forward(stmts, [source], [seed])
            return [known.get(id(t)) for t in targets]

        for row, d, target in zip(out, _mapped(push, source.type), targets, strict=True):
            row.append(None if d is None else ops.reshape(move_lead(d, target.ndim), target.type.shape + source.type.shape))
    return out


def _mapped(sweep: Callable[[Any], Row], type: TensorType) -> Row:
    """Map `sweep` over each seed of the basis, along a leading axis. A single seed is not mapped."""
    if type.size == 1:
        one = tensor(1.0).literal(1.0, type)
        return [None if d is None else ops.reshape(d, (1, *d.type.shape)) for d in sweep(one)]
    connected: list[bool] = []

    def linear(seed: Any) -> list[Operand]:
        found = sweep(seed)
        connected[:] = [d is not None for d in found]
        return [d for d in found if d is not None]

    seeds = ops.reshape(ops.eye(type.size, dtype=type.dtype), (type.size, *type.shape))
    given = iter(vmap(linear)(tensor(seeds)))
    return [next(given) if has else None for has in connected]
