"""Verifies the rules of the IR. `verify` runs after every pass in tests; it is linear in the size of the function.

- Every value is defined once, before its uses, in an enclosing block. Each block of a region has its own parameters.
- Operands are values and literals; a literal's value has the dtype of its type.
- The results' types are those that the op's own type rule infers.
- Regions follow their own rules: `Region.check`.
- Operands that belong together match: the factors by `lu` are those of the matrix that is passed with them (`Op.made_from`).
- Tables that only native code reads are constants with the values that the op prescribes (`Op.tables`).
- Attributes have their declared types, axes count from 0, sizes are not negative: `ops.checks`.
- Phases are `forward` or `backward`. Forward statements may read backward results, as an update after a gradient does.
- Updates name parameters, each once, with a value of the same type; given values are parameters.
- A plan gives every value exclusive memory while it is live: `plan_rules`.
- Effects never occur inside `fuse`. Compared with the input of a pass, no effect is lost or reordered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NoReturn

from .effects import effects_of
from .errors import AdjitError, NotGeneral, VerifyError
from .func import Block, Func, Stmt, Value
from .operand import Literal, Operand
from .ops.checks import check_attributes, check_type, checked_result_types
from .ops.control import Region
from .ops.stack import StackOp
from .plan_rules import verify_plan
from .printer import print_name, print_stmt
from .types import StackType, TensorType

# What type rules may raise on invalid IR: they unpack operands without counting them, and compute with attributes.
_LEAKS = (AdjitError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError)


def verify(func: Func, before: Func | None = None, known: dict[int, Stmt] | None = None) -> Func:
    """Return `func` if it follows the rules; otherwise raise a VerifyError that names the statement. `before` is the input of the pass.

    `known` has statements by their identity whose types were right when they were last verified; this function's are added to them. Passes
    leave most statements as they are, so that a pipeline infers their types once.
    """
    verifier = _Verifier(func, {} if known is None else known)
    verifier.func()
    verify_plan(func, verifier.fail_at)
    if before is not None:
        _check_effects(func, before)
    return func


class _Verifier:
    def __init__(self, whole: Func, known: dict[int, Stmt]) -> None:
        self.whole = whole
        self.known = known
        self.stmt: Stmt | None = None  # the statement being checked, for messages
        self.visible: set[int] = set()
        self.order: list[int] = []  # what is visible, innermost last
        self.defined: set[int] = set()
        self.made: dict[int, Stmt] = {}  # the statement that defines a value

    def func(self) -> None:
        func = self.whole
        self.block(func.block)
        params = {id(p) for p in func.params}
        updated: set[int] = set()
        for param, new in func.updates:
            if id(param) not in params:
                self.fail(f"{self.name(param)} is updated, but is not a parameter")
            if id(param) in updated:
                self.fail(f"{self.name(param)} is updated twice")
            updated.add(id(param))
            self.use(new)
            if new.type != param.type:
                self.fail(f"{self.name(param)}: {param.type} is updated with a value of type {new.type}")
        given: set[int] = set()
        for value in func.given:
            if id(value) not in params:
                self.fail(f"{self.name(value)} is given, but is not a parameter")
            if id(value) in given:
                self.fail(f"{self.name(value)} is given twice")
            given.add(id(value))

    def block(self, block: Block) -> None:
        around = self.stmt
        for param in block.params:
            self.define(param)
        for stmt in block.stmts:
            self.stmt = stmt
            for arg in stmt.args:
                if id(arg) not in self.visible:
                    self.use(arg)
            if stmt.phase not in ("forward", "backward"):
                self.fail(f"its phase is {stmt.phase!r}, neither forward nor backward")
            is_region = isinstance(stmt.op, Region)
            if is_region:
                self.region(stmt)
            else:
                self.types(stmt)
            for result in stmt.results:
                self.define(result, inferred=not is_region)
                self.made[id(result)] = stmt
        self.stmt = around
        for result in (*block.results, *block.saving):
            self.use(result)

    def types(self, stmt: Stmt) -> None:
        if id(stmt) not in self.known:
            self.infer(stmt)
            self.known[id(stmt)] = stmt
        for at, (name, source) in stmt.op.made_from.items():
            made, wanted = self.made.get(id(stmt.args[at])), stmt.args[source]
            if made is not None and made.op.name == name and made.args[0] is not wanted and not isinstance(wanted, Literal):
                self.fail(f"{self.name(stmt.args[at])} is {name} of {self.name(made.args[0])}, not of {self.name(wanted)}")
        for at, table in stmt.op.tables(*(a.type for a in stmt.args)).items() if stmt.op.unread else ():
            made = self.made.get(id(stmt.args[at]))
            if made is None or not made.op.is_constant or made.op.evaluate().tobytes() != table.tobytes():
                self.fail(f"{self.name(stmt.args[at])} is not the table of constants that {stmt.op.name} takes")

    def infer(self, stmt: Stmt) -> None:
        if stmt.blocks:
            self.fail(f"{stmt.op.name} takes no blocks")
        if not isinstance(stmt.op, StackOp) and any(isinstance(a.type, StackType) for a in stmt.args):
            self.fail(f"{stmt.op.name} takes no stacks: only ops whose names begin with stack_ do")
        try:
            inferred = checked_result_types(stmt.op, [a.type for a in stmt.args])
        except NotGeneral:  # whether they fit depends on the sizes
            for result in stmt.results:
                self.exists(result)
            return
        except _LEAKS as error:
            self.fail(f"its operands do not fit: {error}")
        self.same_types(stmt.results, inferred, "its results")

    # ---- regions

    def region(self, stmt: Stmt) -> None:
        assert isinstance(stmt.op, Region)
        depth = len(self.order)
        for block in stmt.blocks:
            self.block(block)
            self.visible.difference_update(self.order[depth:])
            del self.order[depth:]
        try:
            check_attributes(stmt.op, [a.type for a in stmt.args])
        except AdjitError as error:
            self.fail(str(error))
        stmt.op.check(self, stmt)

    def blocks(self, stmt: Stmt, count: int) -> tuple[Block, ...]:
        if len(stmt.blocks) != count:
            self.fail(f"{stmt.op.name} takes {count} block{'s' * (count > 1)}, not {len(stmt.blocks)}")
        return stmt.blocks

    def yields(self, block: Block, types: Sequence[TensorType], may_save: bool = False) -> None:
        self.same_types(block.results, types, "what its block yields")
        if block.saving and not may_save:
            self.fail("only functions and the bodies of loops save values")

    # ---- values

    def define(self, value: Operand, inferred: bool = False) -> None:
        """A value becomes visible; the types that an op infers have been checked already."""
        if not isinstance(value, Value):
            self.fail(f"{value!r} is not a value, and cannot be defined")
        key = id(value)
        if key in self.defined:
            self.fail(f"{self.name(value)} is defined twice")
        if not inferred:
            self.exists(value)
        self.defined.add(key)
        self.visible.add(key)
        self.order.append(key)

    def exists(self, value: Operand) -> None:
        """Native code can allocate what has this type."""
        try:
            check_type(value.type)
        except AdjitError as error:
            self.fail(f"{self.name(value)}: {error}")

    def use(self, x: Operand) -> None:
        if id(x) in self.visible:
            return
        if isinstance(x, Literal):
            if x.value.dtype != x.type.dtype:
                self.fail(f"the literal {x.value!r} is not a value of {x.type}")
        elif not isinstance(x, Value):
            self.fail(f"{type(x).__name__} objects cannot occur in the IR: only values and literals can")
        else:
            self.fail(f"{self.name(x)} is used {'where it is not visible' if id(x) in self.defined else 'before it is defined'}")

    def same_types(self, operands: Sequence[Operand], types: Sequence[TensorType], what: str) -> None:
        if len(operands) != len(types) or any(x.type != t for x, t in zip(operands, types, strict=True)):
            self.fail(f"{what} should have types {_listed(types)}, not {_listed([x.type for x in operands])}")

    # ---- errors

    def fail_at(self, message: str, stmt: Stmt | None) -> NoReturn:
        self.stmt = stmt
        self.fail(message)

    def name(self, value: Operand) -> str:
        return print_name(self.whole, value)

    def fail(self, message: str) -> NoReturn:
        if self.stmt is None:
            raise VerifyError(f"@{self.whole.name}: {message}").at(self.whole.location)
        try:
            text = print_stmt(self.whole, self.stmt)
        except _LEAKS:  # an attribute may be anything
            text = repr(self.stmt)
        raise VerifyError(f"@{self.whole.name}: {message}, in\n  {text}").at(self.stmt.location)


def _listed(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"


def _check_effects(func: Func, before: Func) -> None:
    """Effects that `before` always has must be present, in order. Those in regions may vanish or multiply: branches fold, loops unroll."""
    after = _effects(func.block)
    for stmt in before.stmts:
        if effects_of(stmt.op).ordered and not any(stmt.op == found.op for found in after):
            raise VerifyError(f"@{func.name}: an effect was lost or reordered:\n  {print_stmt(before, stmt)}").at(stmt.location)


def _effects(block: Block) -> Iterator[Stmt]:
    for stmt in block.stmts:
        if effects_of(stmt.op).ordered:
            yield stmt
        for inner in stmt.blocks:
            yield from _effects(inner)
