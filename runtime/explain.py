"""Why a gradient is None: one line, with the place in the user's source where the path from source to target breaks.

Reads what a tape has recorded, dead ends included, and changes nothing. It checks, in order: can there be a gradient at all; was the source
watched; does any path lead from it to the target; and if so, which statement is the first that stops derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from adjit.ir.builder import Builder
from adjit.ir.errors import GradientError
from adjit.ir.func import Stmt, Value
from adjit.ir.location import Location, file_name
from adjit.ir.operand import Operand
from adjit.ir.ops.control import Region
from adjit.ir.ops.logic import Assigned, Detach
from adjit.ir.ops.maps import Cast
from adjit.ir.types import DTYPE_NAMES
from adjit.passes.autodiff.reverse import backpropagate
from adjit.passes.rewrite import operands_read

from .record import Assign, EagerRecord, Record, TraceRecord
from .recording import suspended
from .variable import Variable

SPENT = "the tape has no record any more: gradient() was called, and the tape is not persistent; use persistent=True"

LEFT = "not connected: it was converted to NumPy or Python"


def explain(record: Record | None, target: Any, source: Any, persistent: bool) -> str:
    if record is None:
        return "the tape has recorded nothing" if persistent else SPENT
    for role, x in (("target", target), ("source", source)):
        if not isinstance(x, Operand):
            raise GradientError(f"explain: the {role} must be a tensor or a variable, not {type(x).__name__}")
        if not x.type.is_inexact:
            return f"the {role} is {x.type}: only floats have gradients"
    return PathSearch(record, target, source).answer()


class PathSearch:
    """The statements between one target and one source."""

    def __init__(self, record: Record, target: Operand, source: Operand) -> None:
        self.record = record
        self.source = source
        self.sources = values(record, source)
        self.targets = values(record, target)
        self.stmts = record.everything()

    def answer(self) -> str:
        if isinstance(self.source, Variable) and not self.sources:
            return self.unread_variable(self.source)
        connected = self.record.connected(self.record.statements())
        if not any(id(s) in connected for s in self.sources):
            return "the source is not watched: call tape.watch(source) inside the tape, before it is used"
        starts, ends = set(map(id, self.sources)), set(map(id, self.targets))
        if starts & ends:
            return "connected: the target is the source itself"
        reached = self.forwards(starts, lambda stmt: True)
        if not reached & ends:
            return self.not_connected(reached)
        leading = self.backwards(ends)
        alive = set(starts)
        passed = 0
        for stmt in ordered(self.stmts, starts):
            given = [x for x in operands_read(stmt) if id(x) in alive]
            if not given:
                continue
            through = [r for r in stmt.results if r.type.is_inexact] if passes(stmt, given) else []
            alive.update(map(id, through))
            passed += bool(through)
            if not through and any(id(r) in leading for r in stmt.results):
                broken = self.cut(stmt)
                if not self.is_bypassed(stmt, alive, leading, ends):
                    return broken
        if alive & ends:
            recorded = {id(r) for stmt in self.record.statements() for r in stmt.results}
            if not recorded & ends:
                return "the source was used before it was watched, or while the tape was not recording"
            return f"connected: derivatives pass through {passed} recorded op{'s' if passed != 1 else ''}, so that the gradient is not None"
        return "not connected: every path from the source to the target passes through an op without a derivative"

    def is_bypassed(self, cut: Stmt, alive: set[int], leading: set[int], ends: set[int]) -> bool:
        """Whether a derivative reaches the target without passing through `cut`, a statement that stops it."""
        rest = [s for s in self.stmts if s is not cut]
        found = set(alive)
        for stmt in ordered(rest, found):
            given = [x for x in operands_read(stmt) if id(x) in found]
            if given and any(id(r) in leading for r in stmt.results) and passes(stmt, given):
                found.update(id(r) for r in stmt.results if r.type.is_inexact)
        return bool(found & ends)

    # ---- reachability

    def forwards(self, starts: set[int], through: Callable[[Stmt], bool]) -> set[int]:
        found = set(starts)
        for stmt in ordered(self.stmts, found):
            if through(stmt) and any(id(x) in found for x in operands_read(stmt)):
                found.update(map(id, stmt.results))
        return found

    def backwards(self, ends: set[int]) -> set[int]:
        makers = {id(r): stmt for stmt in self.stmts for r in stmt.results}
        found, pending = set(ends), list(ends)
        while pending:
            stmt = makers.get(pending.pop())
            for x in operands_read(stmt) if stmt is not None else ():
                if id(x) not in found:
                    found.add(id(x))
                    pending.append(id(x))
        return found

    # ---- messages

    def unread_variable(self, variable: Variable) -> str:
        label = f"variable {variable.name!r}" if variable.name else "the variable"
        record = self.record
        if variable.store not in record.asked:
            if not variable.trainable:
                return f"{label} is not trainable, so the tape does not watch it automatically: call tape.watch(variable)"
            if not record.watch_accessed:
                return f"{label} is not watched: the tape was made with watch_accessed_variables=False; call tape.watch(variable)"
        return f"{label} was not read while the tape was recording"

    def not_connected(self, reached: set[int]) -> str:
        if isinstance(self.record, EagerRecord):
            for key, location in self.record.exits.items():
                if key in reached:
                    return f"{LEFT}{at(location)}, where a tape cannot follow; compute on tensors instead"
        made = {id(r) for stmt in self.stmts for r in stmt.results}
        if not any(id(t) in made for t in self.targets) and not any(isinstance(t, Value) for t in self.targets):
            return "not connected: the target was not computed by anything that the tape recorded; compute it inside the tape"
        return "not connected: no recorded op leads from the source to the target"

    def cut(self, stmt: Stmt) -> str:
        op, where = stmt.op, at(stmt.location)
        if isinstance(op, Assign | Assigned) or (isinstance(op, Detach) and self.is_state(stmt)):
            name = op.variable if isinstance(op, Assign) else getattr(stmt.result, "name", None)
            label = f"variable {name!r}" if name else "a variable"
            return f"it passes through the state of {label}, assigned{where}: assignments block gradients"
        if isinstance(op, Detach):
            return f"stop_gradient{where} cuts the path"
        if isinstance(op, Cast) and not stmt.result.type.is_inexact:
            return f"it is cast to {DTYPE_NAMES[op.dtype]}{where}: integers and bools carry no gradients"
        if op.differentiable and all(r.type.is_inexact for r in stmt.results):
            return f"`{op.name}`{where} is not differentiable with respect to the argument that depends on the source"
        return f"`{op.name}`{where} is not differentiable"

    def is_state(self, stmt: Stmt) -> bool:
        record = self.record
        if not isinstance(record, TraceRecord):
            return False
        name = getattr(stmt.result, "name", None)
        written = any(v is stmt.result for v in record.trace.written.values())
        return written or any(cell.name == name for cell in record.trace.cells if name)


def values(record: Record, x: Operand) -> list[Operand]:
    return record.values(x) if isinstance(x, Variable) else [record.resolve(x)]


def ordered(stmts: Sequence[Stmt], known: Iterable[int]) -> list[Stmt]:
    """Sort statements so that each follows those that compute its operands: a record stores its dead ends separately."""
    made = {id(r) for stmt in stmts for r in stmt.results}
    ready = set(known) | {id(x) for stmt in stmts for x in operands_read(stmt) if id(x) not in made}
    waiting = list(stmts)
    out: list[Stmt] = []
    while waiting:
        later: list[Stmt] = []
        for stmt in waiting:
            if all(id(x) in ready for x in operands_read(stmt)):
                out.append(stmt)
                ready.update(map(id, stmt.results))
            else:
                later.append(stmt)
        if len(later) == len(waiting):
            return [*out, *later]
        waiting = later
    return out


def passes(stmt: Stmt, given: Sequence[Operand]) -> bool:
    """Whether a derivative passes from one of these operands to a result."""
    if not stmt.op.differentiable or not any(r.type.is_inexact for r in stmt.results):
        return False
    if isinstance(stmt.op, Region):
        return True
    targets = [r for r in stmt.results if r.type.is_inexact]
    seeds = [r.literal(1.0, r.type) for r in targets]
    sources = [x for x in given if x.type.is_inexact]
    with suspended():
        if any(isinstance(x, Value) for x in (*stmt.args, *stmt.results)):
            with Builder():  # what it emits is discarded
                return any(d is not None for d in backpropagate([stmt], targets, seeds, sources))
        return any(d is not None for d in backpropagate([stmt], targets, seeds, sources))


def at(location: Location | None) -> str:
    return f" at line {location.line} of {file_name(location.file)}" if location is not None else ""
