"""The language of rewrite rules: parses a textual table into patterns that match statements.

    sub_negated: sub(x, neg(y)) => add(x, y)        # why it is exact

A lower-case name matches any operand, the same name twice the same operand; a capital matches a literal; a number matches a literal of that
value (of either dtype, but 0.0 and -0.0 are distinguished); `if integer(x)` calls a guard. Operands of commutative ops match in either
order. Ops with attributes are not supported: rules that depend on attributes are functions in `simplify`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from adjit.ir.errors import ParseError
from adjit.ir.func import Stmt
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops.base import REGISTRY, Op
from adjit.ir.records import NamedTuple
from adjit.ir.types import TensorType

from ..rewrite import COMMUTATIVE

Bindings: TypeAlias = dict[str, Operand]
Emit: TypeAlias = Callable[[Op, tuple[Operand, ...]], Operand]
Guard: TypeAlias = Callable[[Operand], bool]


class PatternName(NamedTuple):
    name: str

    @property
    def is_literal(self) -> bool:
        return self.name[0].isupper()


class Number(NamedTuple):
    value: float

    def matches(self, operand: Operand) -> bool:
        if not isinstance(operand, Literal) or operand.value != self.value:
            return False
        return operand.dtype.kind != "f" or bool(np.signbit(operand.value)) == bool(np.signbit(self.value))


class Apply(NamedTuple):
    op: str
    args: tuple[Term, ...]


Term: TypeAlias = PatternName | Number | Apply


class Rule(NamedTuple):
    name: str
    pattern: Apply
    replacement: Term
    guards: tuple[tuple[Guard, str], ...]
    why: str

    def apply(self, stmt: Stmt, definitions: Mapping[int, Stmt], emit: Emit) -> Operand | None:
        """The operand that replaces the statement's result; None if the rule does not match."""
        bound: Bindings = {}
        if not _matches_args(self.pattern, stmt, definitions, bound) or not all(guard(bound[name]) for guard, name in self.guards):
            return None
        return _build(self.replacement, bound, stmt.args[0].type if isinstance(self.replacement, Apply) else stmt.result.type, emit)


def _matches(term: Term, operand: Operand, definitions: Mapping[int, Stmt], bound: Bindings) -> bool:
    if isinstance(term, Apply):
        stmt = definitions.get(id(operand))
        return stmt is not None and stmt.op.name == term.op and _matches_args(term, stmt, definitions, bound)
    if isinstance(term, Number):
        return term.matches(operand)
    if term.is_literal and not isinstance(operand, Literal):
        return False
    known = bound.setdefault(term.name, operand)
    return known is operand or (isinstance(known, Literal) and known.same(operand))


def _matches_args(call: Apply, stmt: Stmt, definitions: Mapping[int, Stmt], bound: Bindings) -> bool:
    return all(_matches(t, a, definitions, bound) for t, a in zip(call.args, stmt.args, strict=True))


def _build(term: Term, bound: Bindings, type: TensorType, emit: Emit) -> Operand:
    """The operand that a replacement term denotes; `type` is the type of a number in this position."""
    if isinstance(term, PatternName):
        return bound[term.name]
    if isinstance(term, Number):
        return Literal(term.value, type)
    built = [None if isinstance(t, Number) else _build(t, bound, type, emit) for t in term.args]
    like = next((b.type for b in built if b is not None), type)
    return emit(REGISTRY[term.op](), tuple(Literal(t.value, like) if isinstance(t, Number) else b for t, b in zip(term.args, built)))  # type: ignore[misc]


LITERAL = "a literal"
Head: TypeAlias = str | float


class RuleTable:
    """Rules by the op that they match, in the order in which they are tried. Those of an op are parsed when it is first met."""

    def __init__(self, lines: Mapping[str, Sequence[str]], guards: Mapping[str, Guard]) -> None:
        """`lines`: the rules of each op, as text."""
        self._unparsed = dict(lines)
        self._guards = guards
        self._parsed: dict[str, list[Rule]] = {}
        self._numbers: dict[float, float] = {}  # those that occur in a pattern
        self._candidates: dict[tuple[Head, ...], list[Rule]] = {}

    @property
    def by_op(self) -> dict[str, list[Rule]]:
        """All rules."""
        return {op: self.of(op) for op in [*self._parsed, *self._unparsed]}

    def of(self, op: str) -> list[Rule]:
        """The rules of an op, with the operands of commutative ops in every order."""
        found = self._parsed.get(op)
        if found is None:
            found = []
            for line in self._unparsed.get(op, ()):
                rule = _parse_rule(line, self._guards)
                found += [rule._replace(pattern=pattern) for pattern in _orders(rule.pattern)]
            self._numbers.update((term.value, term.value) for rule in found for term in rule.pattern.args if isinstance(term, Number))
            self._parsed[op] = found
            self._unparsed.pop(op, None)
        return found

    def heads(self, stmt: Stmt, definitions: Mapping[int, Stmt]) -> tuple[Head, ...]:
        """Those of the operands of a statement, as far as the rules of its op distinguish them."""
        self.of(stmt.op.name)  # which adds its numbers
        return tuple([self.head(a, definitions) for a in stmt.args])

    def head(self, operand: Operand, definitions: Mapping[int, Stmt]) -> Head:
        """A cheap summary of an operand: the name of the op that defines it, a number that occurs in rules, a marker for other literals, or
        nothing.
        """
        if isinstance(operand, Literal):
            return self._numbers.get(operand.value, LITERAL)
        stmt = definitions.get(id(operand))
        return stmt.op.name if stmt is not None else ""

    def candidates(self, op: str, heads: tuple[Head, ...]) -> list[Rule]:
        """The rules worth trying on an op whose operands have these heads. Cached: a program has few combinations."""
        key = (op, *heads)
        if key not in self._candidates:
            self._candidates[key] = [r for r in self.of(op) if all(map(_may_match, r.pattern.args, heads))]
        return self._candidates[key]


def _may_match(term: Term, head: Head) -> bool:
    if isinstance(term, PatternName):
        return not term.is_literal or head == LITERAL or isinstance(head, float)
    return head == (term.op if isinstance(term, Apply) else term.value)


# ---- parsing the table


def parse_rules(table: str, guards: Mapping[str, Guard]) -> RuleTable:
    """Parse a table of one rule per line."""
    lines: dict[str, list[str]] = {}
    names: set[str] = set()
    for line in filter(str.strip, table.splitlines()):
        name, _, rest = line.strip().partition(":")
        if name in names:
            raise ParseError(f"two rules are named {name!r}")
        names.add(name)
        lines.setdefault(rest.partition("(")[0].strip(), []).append(line.strip())
    return RuleTable(lines, guards)


def _parse_rule(line: str, guards: Mapping[str, Guard]) -> Rule:
    found = re.fullmatch(r"(\w+):\s*(.+?)\s*=>\s*(.+?)(?:\s+if\s+(.+?))?\s*#\s*(.+)", line)
    if found is None:
        raise ParseError(f"not a rule: {line!r} (expected `name: pattern => replacement if guard(x)  # why`)")
    name, pattern, replacement, conditions, why = found.groups()
    term = _parse_term(pattern)
    if not isinstance(term, Apply):
        raise ParseError(f"rule {name}: the pattern must be an op, not {pattern!r}")
    asked = re.findall(r"(\w+)\((\w+)\)", conditions or "")
    return Rule(name, term, _parse_term(replacement), tuple((guards[guard], of) for guard, of in asked), why)


def _parse_term(text: str) -> Term:
    tokens = re.findall(r"-?\d+(?:\.\d+)?|\w+|[(),]", text)
    term, rest = _take_term(tokens)
    if rest:
        raise ParseError(f"{text!r}: {''.join(rest)!r} is left over")
    return term


def _take_term(tokens: list[str]) -> tuple[Term, list[str]]:
    head, *rest = tokens
    if head[0] in "-0123456789":
        return Number(float(head)), rest
    if not rest or rest[0] != "(":
        return PatternName(head), rest
    args: list[Term] = []
    while rest[0] != ")":
        arg, rest = _take_term(rest[1:])
        args.append(arg)
    return Apply(head, tuple(args)), rest[1:]


def _orders(call: Apply) -> Iterator[Apply]:
    """The pattern with the operands of commutative ops in every order that gives a different pattern."""
    variants: list[tuple[Term, ...]] = [()]
    for arg in call.args:
        choices: list[Term] = list(_orders(arg)) if isinstance(arg, Apply) else [arg]
        variants = [(*before, choice) for before in variants for choice in choices]
    for args in variants:
        yield Apply(call.op, args)
        if call.op in COMMUTATIVE and _anonymous(args[0]) != _anonymous(args[1]):
            yield Apply(call.op, args[::-1])


def _anonymous(term: Term) -> Any:
    """A term without its names, to tell whether exchanging two makes a difference."""
    if isinstance(term, Apply):
        return term.op, *map(_anonymous, term.args)
    return term.is_literal if isinstance(term, PatternName) else term
