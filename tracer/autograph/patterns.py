"""`match` statements whose cases may depend on traced values: comparisons become guards, and guards become `if` statements.

match n, v:                match n, v:                     match n, v:
    case 2, w:         ->      case m, w if m == 2:    ->      case m, w:
        ...                        ...                             if m == 2: ...
                                                                   else: (the following cases)
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from copy import deepcopy

from .placing import load, placed

NUMBERS = ("int", "float", "bool", "complex")  # classes that a traced number may represent
GUARDS = 6  # maximum number of guards of cases that may fail to match otherwise: each repeats the following cases


def opened(case: ast.match_case, fresh: Callable[[str], str]) -> ast.match_case:
    """Return a case that compares with numbers and with True and False in its guard: a pattern cannot do so with traced values."""
    tests: list[ast.expr] = []
    pattern = Opening(fresh, tests).of(case.pattern)
    if not tests:
        return case
    guards = [*tests, case.guard] if case.guard is not None else tests
    guard = guards[0] if len(guards) == 1 else placed(ast.BoolOp(ast.And(), list(guards)), case.pattern)
    return ast.match_case(pattern, guard, case.body)


class Matches(ast.Compare):
    """A comparison that was a pattern."""


class Opening:
    """Replaces patterns that compare by names, and collects the comparisons."""

    def __init__(self, fresh: Callable[[str], str], tests: list[ast.expr]) -> None:
        self.fresh = fresh
        self.tests = tests

    def of(self, pattern: ast.pattern, name: str | None = None) -> ast.pattern:
        """The new pattern, which binds `name` if there is one."""
        match pattern:
            case ast.MatchValue() | ast.MatchSingleton() | ast.MatchOr() if decides(pattern):
                name = name or self.fresh("matched")
                self.tests.append(comparison(name, pattern))
                return placed(ast.MatchAs(None, name), pattern)
            case ast.MatchAs(pattern=ast.pattern() as inner, name=str() as bound):
                new = self.of(inner, bound)
                return new if isinstance(new, ast.MatchAs) and new.name == bound else placed(ast.MatchAs(new, bound), pattern)
            case ast.MatchSequence(patterns=parts):
                return placed(ast.MatchSequence([self.of(part) for part in parts]), pattern)
            case ast.MatchMapping(keys=keys, patterns=parts, rest=rest):
                return placed(ast.MatchMapping(keys, [self.of(part) for part in parts], rest), pattern)
            case ast.MatchClass(cls=ast.Name(id=kind), patterns=[] | [ast.MatchAs(pattern=None)] as parts, kwd_attrs=[]) if kind in NUMBERS:
                capture = parts[0].name if parts and isinstance(parts[0], ast.MatchAs) else None
                held = capture or name or self.fresh("matched")
                call = ast.Call(load("isinstance"), [load(held), load(kind)], [])
                self.tests.append(placed(call, pattern))
                return placed(
                    ast.MatchAs(placed(ast.MatchAs(None, held), pattern), name) if name not in (None, held) else ast.MatchAs(None, held),
                    pattern,
                )
            case ast.MatchClass(cls=cls, patterns=parts, kwd_attrs=names, kwd_patterns=more):
                return placed(ast.MatchClass(cls, [self.of(p) for p in parts], names, [self.of(p) for p in more]), pattern)
        return pattern


def decides(pattern: ast.pattern) -> bool:
    """Whether the pattern only compares, with a value that a traced value may equal."""
    match pattern:
        case ast.MatchValue(value=ast.Constant(value=str() | bytes())):
            return False
        case ast.MatchValue():
            return True
        case ast.MatchSingleton(value=value):
            return value is not None
        case ast.MatchOr(patterns=parts):
            return all(isinstance(p, ast.MatchValue | ast.MatchSingleton) for p in parts) and any(map(decides, parts))
    return False


def comparison(name: str, pattern: ast.pattern) -> ast.expr:
    match pattern:
        case ast.MatchOr(patterns=parts):
            return placed(ast.BoolOp(ast.Or(), [comparison(name, part) for part in parts]), pattern)
        case ast.MatchSingleton(value=value):
            return placed(ast.Compare(load(name), [ast.Is()], [ast.Constant(value)]), pattern)
        case ast.MatchValue(value=value):
            return placed(Matches(load(name), [ast.Eq()], [value]), pattern)
    raise AssertionError(pattern)


def repeats(cases: Sequence[ast.match_case]) -> int:
    """How often the cases after a guard are repeated: not after a case that matches everything."""
    return sum(case.guard is not None and not is_irrefutable(case.pattern) for case in cases)


def without_guards(subject: str, cases: Sequence[ast.match_case], at: ast.stmt) -> ast.Match:
    """Turn the guards of a `match` into `if` statements, with the following cases in their `else`: a guard may be traced."""
    out: list[ast.match_case] = []
    for i, case in enumerate(cases):
        body = case.body
        if case.guard is not None:
            rest: list[ast.stmt] = [without_guards(subject, deepcopy(cases[i + 1 :]), at)] if cases[i + 1 :] else []
            body = [placed(ast.If(case.guard, body, rest), case.guard)]
        out.append(ast.match_case(case.pattern, None, body))
        if is_irrefutable(case.pattern):  # cases after one that always matches are in its `else`
            break
    return placed(ast.Match(placed(load(subject), at), out), at)


def is_irrefutable(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchAs(pattern=inner):
            return inner is None or is_irrefutable(inner)
        case ast.MatchOr(patterns=patterns):
            return any(map(is_irrefutable, patterns))
    return False
