"""Backward programs of eager tapes, cached by the structure of the recorded ops.

Pulling derivatives back op by op takes some twenty microseconds an op: rules compute with tensors, and most of the time is spent deciding
which NumPy functions to call. Tapes in a loop record the same structure repeatedly (see `log.py`), and the decisions are always the
same. So once a structure has been seen `OFTEN` times, the rules run on values of the IR instead, by the adjoint pass; the result is
simplified and written as a Python function that calls NumPy on the arrays of the tape (`ir.source`). From then on a gradient is a call
of that function. It calls the same functions of NumPy in the same order as the rules do on tensors, and gives the same bits.

A program takes everything it needs from the log, and holds no array. No program is written for a structure that changes from tape to tape.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import count
from typing import Any, TypeAlias

from adjit.ir.builder import Builder
from adjit.ir.errors import UnsupportedError
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.locks import new_lock
from adjit.ir.operand import Concrete, Literal, Operand
from adjit.ir.ops.base import apply
from adjit.ir.ops.shape import Broadcast
from adjit.ir.silence import silently
from adjit.ir.types import DTYPES, TensorType

from .internal import backpropagate
from .log import LINEAR, TapeLog, expanded, operand
from .quick import wrapped

OFTEN = 8  # about as many sweeps, op by op, take as long as writing a program
LONGEST = 10_000  # entries: longer tapes are pulled back op by op, as writing their programs takes seconds
MOST_PROGRAMS = 256  # in the cache
MOST_ENTRIES = 100_000  # of all cached programs together
SEEN = 4_096  # structures that have been seen but not often

SCALARS: dict[str, Any] = {dtype.type.__name__: dtype.type for dtype in DTYPES.values()}

Pulled: TypeAlias = list[Operand | None]


class BackwardProgram:
    """A backward program. `call(entries, seeds)` returns arrays; `results` say which gradient each of them is."""

    __slots__ = ("call", "results", "text", "size", "used")

    def __init__(self, call: Callable[..., Any] | None, results: Sequence[int | Literal | None], text: str) -> None:
        self.size = 0  # the number of entries that it is for
        self.call = call  # None: every gradient is a constant, or there is none
        self.results = results  # for each source: the position among the arrays, a constant, or None if no derivative reaches it
        self.text = text
        self.used = 0

    def run(self, log: TapeLog, seeds: Sequence[Operand | None]) -> Pulled:
        if self.call is None:
            return list(self.results)  # type: ignore[arg-type] # constants
        arrays = silently(self.call, log.entries, seeds)
        return [wrapped(arrays[r]) if type(r) is int else r for r in self.results]  # type: ignore[misc]


_programs: dict[Hashable, BackwardProgram | None] = {}  # None: an op has no Python source
_seen: dict[int, int] = {}
_clock = count(1)
_lock = new_lock()


def pulled(log: TapeLog, targets: Sequence[Operand], seeds: Sequence[Operand | None], sources: Sequence[Operand]) -> Pulled | None:
    """The cotangents of the sources, by a program; None if there is none for this structure."""
    if not log.is_plain or len(log.entries) > LONGEST:
        return None
    number = log.numbers.get
    key = (
        tuple(log.structure),
        tuple([(x.buffer.dtype.num, x.buffer.shape) for x in log.roots]),  # type: ignore[attr-defined] # tensors, if it is plain
        tuple([number(id(t)) for t in targets]),
        tuple([s if s is None else seed(s) for s in seeds]),
        tuple([number(id(s)) for s in sources]),
    )
    program = _programs.get(key)
    if program is None:
        if key in _programs or not is_frequent(key):
            return None
        program = remembered(key, log, targets, seeds, sources)
        if program is None:
            return None
    program.used = next(_clock)
    try:
        return program.run(log, seeds)
    except Exception:  # op by op, it raises what the ops raise
        return None


def seed(x: Operand) -> Hashable:
    """The part of a program's key that describes a given cotangent."""
    return (x.type, x.value.tobytes()) if isinstance(x, Literal) else x.type


def is_frequent(key: Hashable) -> bool:
    """Whether a structure has been seen often enough to write a program for it."""
    code = hash(key)
    with _lock:
        if len(_seen) >= SEEN:
            _seen.clear()
        _seen[code] = seen = _seen.get(code, 0) + 1
        if seen < OFTEN:
            return False
        del _seen[code]
        return True


def remembered(
    key: Hashable, log: TapeLog, targets: Sequence[Operand], seeds: Sequence[Operand | None], sources: Sequence[Operand]
) -> BackwardProgram | None:
    try:
        program = written(log, targets, seeds, sources)
        program.size, program.used = len(log.entries), next(_clock)
    except UnsupportedError:
        program = None
    with _lock:
        _programs[key] = program
        size = sum(p.size for p in _programs.values() if p is not None)
        while len(_programs) > MOST_PROGRAMS or size > MOST_ENTRIES:
            oldest = min(_programs, key=lambda k: p.used if (p := _programs[k]) is not None else 0)
            dropped = _programs.pop(oldest)
            size -= 0 if dropped is None else dropped.size
    return program


class Parameters:
    """The values of the IR that represent the operands of a log, and the Python expressions by which a call finds their arrays."""

    def __init__(self) -> None:
        self.values: dict[int, Operand] = {}  # by the id of the operand
        self.params: list[Value] = []
        self.found: dict[int, str] = {}  # by the id of the parameter

    def parameter(self, type: TensorType, expression: str) -> Value:
        out = Value(type)
        self.params.append(out)
        self.found[id(out)] = expression
        return out

    def array(self, x: Operand, expression: str) -> Operand:
        """Return a new parameter for an operand, even if it has one: in another log of the same structure, two operands may be there."""
        return x if isinstance(x, Literal) else self.parameter(x.type, f"{expression}.buffer")

    def of(self, x: Operand, expression: str) -> Operand:
        """Return the parameter of an operand that the structure identifies: one for all its occurrences."""
        if id(x) not in self.values:
            self.values[id(x)] = self.array(x, expression)
        return self.values[id(x)]


def written(log: TapeLog, targets: Sequence[Operand], seeds: Sequence[Operand | None], sources: Sequence[Operand]) -> BackwardProgram:
    """The program that pulls back the cotangents `seeds` of the targets, for all logs of this structure."""
    params = Parameters()
    with Builder() as builder:
        stmts: list[Stmt] = []
        for k, (op, args, results) in enumerate(log.entries):
            values = []
            for i, x in enumerate(args):
                if isinstance(x, Concrete):
                    values.append((params.of if id(x) in log.numbers else params.array)(x, f"e[{k}][1][{i}]"))
                    continue
                known = operand(x, results[0].type)
                if isinstance(op, LINEAR):
                    number = f"e[{k}][1][{i}]" + (".value" if isinstance(x, Literal) else "")
                    scalar = params.parameter(known.type.with_shape(()), f"{known.type.dtype.type.__name__}({number})")
                    known = apply(Broadcast(known.type.shape), scalar) if known.type.shape else scalar
                values.append(known)
            outs = tuple(params.of(r, f"e[{k}][2][{j}]") for j, r in enumerate(results))
            stmts += expanded(op, tuple(values), outs, apply)
        watched = [
            (params.of(t, "None"), Literal(1.0, t.type) if s is None else params.array(s, f"s[{i}]"))
            for i, (t, s) in enumerate(zip(targets, seeds, strict=True))
            if id(t) in log.numbers
        ]
        wanted = [params.of(s, "None") if id(s) in log.numbers else None for s in sources]
        asked = [s for s in wanted if s is not None]
        cotangents = iter(backpropagate(stmts, [t for t, _ in watched], [d for _, d in watched], asked))
        found = [None if s is None else next(cotangents) for s in wanted]
        builder.params[:] = params.params
        block = builder.finish([d for d in found if d is not None])
    return program(Func("backward", block), params, found)


def program(func: Func, params: Parameters, found: Sequence[Operand | None]) -> BackwardProgram:
    """Simplify a function and write it as Python."""
    from adjit.ir.source_module import QUIET, write_module  # noqa: PLC0415 - only programs need them
    from adjit.passes.simplify.cse import eliminate_common_subexpressions  # noqa: PLC0415 - as above
    from adjit.passes.simplify.dce import eliminate_dead_code  # noqa: PLC0415 - as above
    from adjit.passes.simplify.fold import fold  # noqa: PLC0415 - as above
    from adjit.passes.simplify.simplify import simplify  # noqa: PLC0415 - as above

    from .source import executed  # noqa: PLC0415 - as above

    for each in (fold, simplify, eliminate_common_subexpressions, simplify, eliminate_dead_code):
        func = each(func)
    pulled = iter(func.results)
    results: list[int | Literal | None] = []
    computed: list[Operand] = []
    for d in found:
        x = None if d is None else next(pulled)
        if isinstance(x, Value):
            results.append(len(computed))
            computed.append(x)
        else:
            results.append(x)  # type: ignore[arg-type] # a literal
    if not computed:
        return BackwardProgram(None, results, "")
    block = Block(func.params, func.stmts, computed)
    read = set(map(id, block.uses()))
    block = Block([p for p in func.params if id(p) in read], func.stmts, computed)
    func = func.replace(block=block)
    text = write_module(func, func, None, {})
    source = text.text.replace(f"{QUIET}\n", "")
    names = executed(source, text.arrays, "<adjit backward>")
    given = ", ".join(params.found[id(p)] for p in block.params)
    form = "({},)" if len(computed) == 1 else "{}"
    call = eval(f"lambda e, s: {form.format(f'backward({given})')}", {**SCALARS, "backward": names[text.whole]})
    return BackwardProgram(call, results, source)
