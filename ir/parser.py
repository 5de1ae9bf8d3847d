"""Text -> Func: parses everything that `ir.printer` prints. A ParseError shows line, column and span.

    func     = "func" "@"name ["[" symbols "]"] params "->" types ["saving" types] ["arena" bytes ["sized" "[" sizes "]"]]
               [location] body
    params   = "(" binders ")" ["given" "(" binders ")"]
    body     = "{" stmts "return" [operands] ["saving" operands] ["updating" "%"name "=" operand, ...] "}"
    symbols  = name "=" size ["in" size ".." [size]], ...
    stmt     = [binders "="] op [operands] [attributes] ["@registers"] [location] [regions]
    binder   = "%"name ":" type ["@" place]
    operand  = "%"name | number [":" type]
    location = "!" [file ":"] line [":" column]
    region   = "{" stmts ["yield" operands ["saving" operands]] "}"

Line ends terminate statements, `#` starts a comment. Names are scoped by blocks. The text is checked only as far as needed to build a Func;
whether it follows the rules of the IR is checked by `ir.verifier`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from .attributes import parse_op, scalar_of
from .errors import ParseError
from .func import Block, Func, Phase, Stmt, Value
from .layout import Layout
from .location import Location
from .operand import Literal, Operand
from .ops.base import REGISTRY, Op
from .ops.control import Region
from .ops.custom import CustomGradient
from .plan import BufferView, Place, Plan
from .printer import CONDITION, INDEX, literal_type
from .records import NamedTuple
from .scanner import FILE, NAME, NUMBER, Scanner
from .sizes import Symbols
from .types import TensorType

T = TypeVar("T")

_PLACE = re.compile(r"[a-z]+\+[0-9]{1,18}|%[\w.]+")


def parse_func(text: str) -> Func:
    """Parse a text that contains exactly one function."""
    funcs = parse_funcs(text)
    if len(funcs) != 1:
        raise ParseError(f"expected one function, found {len(funcs)}")
    return funcs[0]


def parse_funcs(text: str) -> list[Func]:
    """Parse all functions of a text, such as a forward function and its backward counterpart."""
    scanner = Scanner(text)
    scanner.next_line()
    out = []
    while scanner.at < len(text):
        out.append(_Parser(scanner).func())
        scanner.next_line()
    return out


class _Bare(NamedTuple):
    """A literal operand whose type has yet to be inferred from its position."""

    text: str
    start: int
    end: int


class _Binder(NamedTuple):
    """A value about to be defined: the results of a statement become visible after it."""

    name: str
    value: Value
    start: int
    end: int


class _Tail(NamedTuple):
    """The part of a statement after its operands."""

    op: Op
    registers: bool
    location: Location | None


class _Parser:
    def __init__(self, scanner: Scanner) -> None:
        self.scan = scanner
        self.scope: dict[str, Value] = {}
        self.order: list[str] = []  # the names in scope, innermost last
        self.file: str | None = None
        self.places: list[tuple[_Binder, str, Layout | None, int]] = []
        self.registers: set[int] = set()  # ids of statements, as in Plan
        self.defined: dict[str, Value] = {}  # every name of the function, for windows into buffers defined later

    # ---- function

    def func(self) -> Func:
        scan = self.scan
        scan.expect_word("func")
        scan.expect("@")
        name = scan.match(NAME) or scan.string()
        if name is None:
            scan.fail_here("expected the function's name")
        scan.symbols = Symbols()
        if scan.accept("["):
            scan.declare_symbols()
        scan.expect("(")
        params = self.listed(")", self.param)
        given = self.given(params) if scan.accept_word("given") else []
        scan.expect("->")
        types = self.listed(")", scan.type) if scan.accept("(") else [scan.type()]
        saving: list[TensorType] = []
        if scan.accept_word("saving"):
            scan.expect("(")
            saving = self.listed(")", scan.type)
        arena = scan.integer() if scan.accept_word("arena") else None
        sized = list[int]()
        if arena is not None and scan.accept_word("sized"):
            scan.expect("[")
            sized = self.listed("]", scan.size)
        location = self.location()
        self.file = location.file if location else None
        scan.expect("{")
        scan.end_line()
        stmts = self.stmts("forward")
        scan.expect_word("return")
        results, saved = self.results(types), self.saved(saving)
        self.check_types(results, types, "results")
        self.check_types(saved, saving, "saved values")
        updates = self.updates() if scan.accept_word("updating") else []
        scan.end_line()
        scan.expect("}")
        scan.end_line()
        plan = self.plan(arena, sized)
        if plan is not None:
            _place_rows(plan, stmts)
        return Func(name, Block(params, stmts, results, saved), given, updates, location, plan)

    def given(self, params: list[Value]) -> list[Value]:
        """Binders of further parameters, or names of parameters already listed."""

        def one() -> Value:
            before = self.scan.at
            name = self.scan.value_name()
            if not self.scan.accept(":"):
                return self.lookup(name)
            self.scan.at = before
            params.append(self.param())
            return params[-1]

        self.scan.expect("(")
        return self.listed(")", one)

    def check_types(self, operands: Sequence[Operand], types: Sequence[TensorType], what: str) -> None:
        have = [x.type for x in operands]
        if have != list(types):
            self.scan.fail(f"the {what} have types ({', '.join(map(str, have))}), the function's head says ({', '.join(map(str, types))})")

    def updates(self) -> list[tuple[Value, Operand]]:
        out = []
        while True:
            param = self.lookup(self.scan.value_name())
            self.scan.expect("=")
            out.append((param, self.operand(param.type)))
            if not self.scan.accept(","):
                return out

    # ---- statements

    def stmts(self, phase: Phase) -> list[Stmt]:
        """Parse statements up to the block's last line (`return`, `yield`, `cond`) or closing brace, which is not consumed."""
        scan = self.scan
        out: list[Stmt] = []
        while True:
            binders: list[_Binder] = []
            before = scan.at
            if scan.accept("%"):
                scan.at = before
                binders = self.separated(self.binder)
                scan.expect("=")
                before = scan.at
            word = scan.word()
            if word is None and binders:
                scan.fail_here("expected an op")
            if word is None or word in ("return", "yield", "cond"):
                scan.at = before
                return out
            if word in ("forward", "backward") and not binders and scan.accept(":"):
                phase = "forward" if word == "forward" else "backward"
                scan.end_line()
                continue
            form = _FORMS.get(word, _Parser.plain)
            out.append(form(self, self.op_class(word), tuple(b.value for b in binders), phase))
            scan.end_line()
            for binder in binders:
                self.define(binder)

    def op_class(self, name: str) -> type[Op]:
        found = REGISTRY.get(name)
        if found is None:
            from .ops import late  # noqa: PLC0415 - ops that few programs use

            late.load()
            found = REGISTRY.get(name)
        if found is None:
            from difflib import get_close_matches  # noqa: PLC0415 - needed for this message alone

            close = get_close_matches(name, REGISTRY, 1)
            self.scan.fail(f"there is no op {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
        return found

    def plain(self, op_class: type[Op], results: tuple[Value, ...], phase: Phase) -> Stmt:
        """An op without special syntax, with any number of regions."""
        scan = self.scan
        name = (scan.start, scan.at)
        types = [r.type for r in results]
        parsed: list[Operand | _Bare] = []
        x = self.value_or_bare()
        while x is not None:
            parsed.append(x)
            x = self.value_or_bare(required=True) if scan.accept(",") else None
        context = literal_type(op_class, (a.type for a in parsed if isinstance(a, Operand) and not isinstance(a, Literal)), types)
        args = [self.literal(a, context) if isinstance(a, _Bare) else a for a in parsed]
        tail = self.tail(op_class, types, name)
        if isinstance(tail.op, CustomGradient):
            tail = tail._replace(op=self.custom_gradient(tail.op))
        blocks: list[Block] = []
        while issubclass(op_class, Region) and not scan.line_end():
            if blocks:
                scan.expect_word("and")
            blocks.append(self.region(self.listed(")", self.binder) if scan.accept("(") else [], types, phase))
        return self.stmt(tail, args, results, blocks, phase)

    def custom_gradient(self, op: CustomGradient) -> CustomGradient:
        """The op, with the blocks that its text shows."""
        parts = op.function, op.inputs, op.values, op.pulled
        if self.scan.accept_word("later"):
            return CustomGradient.unknown(*parts)
        blocks: list[Block | None] = []
        for word in ("pull", "push"):
            if word == "pull":
                self.scan.expect_word(word)
            elif not self.scan.accept_word(word):
                blocks.append(None)
                break
            blocks.append(self.closed_region())
        pull, push = blocks
        assert pull is not None
        return CustomGradient.of(*parts, pull, push)

    def closed_region(self) -> Block:
        """A block that reads only its parameters. A parameter with the name of an outer value represents that value."""
        self.scan.expect("(")
        params = self.listed(")", self.binder)
        for param in params:
            around = self.scope.get(param.name)
            if around is not None and around.type != param.value.type:
                self.scan.fail(f"%{param.name} is {around.type} around this block", param.start, param.end)
        block = self.region([p for p in params if p.name not in self.scope], (), "backward")
        return Block([self.scope.get(p.name, p.value) for p in params], block.stmts, block.results)

    def if_(self, op_class: type[Op], results: tuple[Value, ...], phase: Phase) -> Stmt:
        name = (self.scan.start, self.scan.at)
        types = [r.type for r in results]
        condition = self.operand(CONDITION)
        tail = self.tail(op_class, types, name)
        then = self.region([], types, phase)
        other = self.region([], types, phase) if self.scan.accept_word("else") else Block((), (), ())
        return self.stmt(tail, [condition], results, [then, other], phase)

    def for_(self, op_class: type[Op], results: tuple[Value, ...], phase: Phase) -> Stmt:
        scan = self.scan
        name = (scan.start, scan.at)
        before = scan.at
        index = scan.value_name()
        if scan.accept(":"):
            scan.at = before
            k = self.binder()
        else:
            k = self.binder_of(index, INDEX)
        scan.expect_word("in")
        start = self.operand(INDEX)
        scan.expect("..")
        stop = self.operand(INDEX)
        carry, inits = self.carry()
        tail = self.tail(op_class, [r.type for r in results], name)
        body = self.region([k, *carry], [c.value.type for c in carry], phase)
        return self.stmt(tail, [start, stop, *inits], results, [body], phase)

    def while_(self, op_class: type[Op], results: tuple[Value, ...], phase: Phase) -> Stmt:
        name = (self.scan.start, self.scan.at)
        planned = len(self.places)
        carry, inits = self.carry()
        # The text lists the carried values once; each block has its own parameters.
        twins = [c._replace(value=Value(c.value.type, c.value.name)) for c in carry]
        twin_of = {id(c): twin for c, twin in zip(carry, twins, strict=True)}
        self.places += [(twin_of[id(binder)], text, layout, at) for binder, text, layout, at in self.places[planned:]]
        tail = self.tail(op_class, [r.type for r in results], name)
        condition = self.region(carry, [CONDITION], phase, "cond")
        self.scan.expect_word("do")
        body = self.region(twins, [c.value.type for c in carry], phase)
        return self.stmt(tail, inits, results, [condition, body], phase)

    def carry(self) -> tuple[list[_Binder], list[Operand]]:
        def one() -> tuple[_Binder, Operand]:
            binder = self.binder()
            self.scan.expect("=")
            return binder, self.operand(binder.value.type)

        if not self.scan.accept_word("carry"):
            return [], []
        self.scan.expect("(")
        pairs = self.listed(")", one)
        return [b for b, _ in pairs], [x for _, x in pairs]

    def region(self, params: list[_Binder], types: Sequence[TensorType], phase: Phase, end: str = "yield") -> Block:
        """A block in braces; its names go out of scope after it."""
        scan = self.scan
        scan.expect("{")
        scan.end_line()
        depth = len(self.order)
        for param in params:
            self.define(param)
        with scan.deeper():
            stmts = self.stmts(phase)
        results: list[Operand] = []
        saved: list[Operand] = []
        if scan.accept_word(end):
            results, saved = self.results(types), self.saved(())
            scan.end_line()
        scan.expect("}")
        for name in self.order[depth:]:
            del self.scope[name]
        del self.order[depth:]
        return Block([p.value for p in params], stmts, results, saved)

    def tail(self, op_class: type[Op], types: Sequence[TensorType], name: tuple[int, int]) -> _Tail:
        op = parse_op(self.scan, op_class, types, name)
        registers = self.scan.accept("@")
        if registers:
            self.scan.expect_word("registers")
        return _Tail(op, registers, self.location())

    def stmt(self, tail: _Tail, args: Sequence[Operand], results: tuple[Value, ...], blocks: Sequence[Block], phase: Phase) -> Stmt:
        stmt = Stmt(tail.op, tuple(args), results, tuple(blocks), tail.location, phase)
        if tail.registers:
            self.registers.add(id(stmt))
        return stmt

    # ---- operands and binders

    def results(self, types: Sequence[TensorType]) -> list[Operand]:
        """Operands up to the end of the line, `saving` or `updating`; `types` are the types of bare literals."""
        out: list[Operand] = []
        while True:
            x = self.value_or_bare(required=bool(out))
            if x is None:
                return out
            out.append(self.literal(x, types[len(out)] if len(out) < len(types) else None) if isinstance(x, _Bare) else x)
            if not self.scan.accept(","):
                return out

    def saved(self, types: Sequence[TensorType]) -> list[Operand]:
        return self.results(types) if self.scan.accept_word("saving") else []

    def operand(self, context: TensorType | None) -> Operand:
        x = self.value_or_bare(required=True)
        assert x is not None
        return self.literal(x, context) if isinstance(x, _Bare) else x

    def value_or_bare(self, required: bool = False) -> Operand | _Bare | None:
        """`%x`, `0.0:f64[3]`, or `0.0`; None if no operand comes next."""
        scan = self.scan
        before = scan.at
        if scan.accept("%"):
            scan.at = before
            return self.lookup(scan.value_name())
        text = scan.match(NUMBER)
        if text is None:
            return scan.fail_here("expected an operand") if required else None
        bare = _Bare(text, scan.start, scan.at)
        return self.literal(bare, scan.type()) if scan.accept(":") else bare

    def literal(self, bare: _Bare, type: TensorType | None) -> Literal:
        if type is None:
            self.scan.fail(f"the type of this literal cannot be inferred: write it as {bare.text}:f64[]", bare.start, bare.end)
        try:
            return Literal(scalar_of(bare.text, type.dtype), type)
        except ValueError as error:
            self.scan.fail(str(error), bare.start, bare.end)

    def lookup(self, name: str) -> Value:
        found = self.scope.get(name)
        return found if found is not None else self.scan.fail(f"%{name} is not defined here")

    def param(self) -> Value:
        binder = self.binder()
        self.define(binder)
        return binder.value

    def binder(self) -> _Binder:
        name = self.scan.value_name()
        start, end = self.scan.start, self.scan.at
        self.scan.expect(":")
        binder = self.binder_of(name, self.scan.type(), start, end)
        if self.scan.accept("@"):
            text = self.scan.match(_PLACE)
            if text is None:
                self.scan.fail_here("expected a place like arena+128")
            at, layout = self.scan.start, None
            if self.scan.accept("+"):
                offset = self.scan.size()
                self.scan.expect("[")
                layout = Layout(offset, tuple(self.listed("]", self.scan.size)))
            self.places.append((binder, text, layout, at))
        return binder

    def binder_of(self, name: str, type: TensorType, start: int | None = None, end: int | None = None) -> _Binder:
        value = Value(type, None if name[0].isdigit() else name)
        return _Binder(name, value, self.scan.start if start is None else start, self.scan.at if end is None else end)

    def define(self, binder: _Binder) -> None:
        if binder.name in self.scope:
            self.scan.fail(f"%{binder.name} is defined twice", binder.start, binder.end)
        self.scope[binder.name] = self.defined[binder.name] = binder.value
        self.order.append(binder.name)

    # ---- helpers

    def listed(self, close: str, one: Callable[[], T]) -> list[T]:
        """Items separated by commas, up to a closing mark."""
        if self.scan.accept(close):
            return []
        out = self.separated(one)
        self.scan.expect(close)
        return out

    def separated(self, one: Callable[[], T]) -> list[T]:
        out = [one()]
        while self.scan.accept(","):
            out.append(one())
        return out

    def location(self) -> Location | None:
        """`!12:9` in the function's file, `!other.py:3:1` in another."""
        scan = self.scan
        if not scan.accept("!"):
            return None
        file = scan.match(FILE) or scan.string()
        if file is not None:
            scan.expect(":")
        elif self.file is None:
            scan.fail("the function has no location whose file this one could inherit: write !file.py:line:column")
        line = scan.integer()
        return Location(file if file is not None else self.file or "", line, scan.integer() if scan.accept(":") else 0)

    def plan(self, arena: int | None, sized: list[int]) -> Plan | None:
        if arena is None:
            for _, text, _, at in self.places[:1]:
                self.scan.fail("a place needs `arena` and its size in the function's head", at, at + len(text))
            return None
        plan = Plan(arena, registers=self.registers, sized=sized)
        for binder, where, given, at in self.places:
            try:
                root = self.defined[where[1:]] if where.startswith("%") else binder.value
                if root is binder.value:
                    plan.places[id(root)] = Place.parse(where)
            except (KeyError, ParseError):
                self.scan.fail(f"{where} is not a place", at, at + len(where))
            layout = given or Layout.contiguous(binder.value.type.shape)
            if len(layout.strides) != binder.value.type.rank:
                self.scan.fail(f"{len(layout.strides)} strides for {binder.value.type}", at, at + len(where))
            plan.windows[id(binder.value)] = BufferView(root, layout)
        return plan


def _place_rows(plan: Plan, stmts: Sequence[Stmt]) -> None:
    """Values inside `rows` that have no place are in the buffer of one row."""
    for stmt in stmts:
        for block in stmt.blocks:
            _place_rows(plan, block.stmts)
        if stmt.op.name == "rows":
            for value in (r for s in stmt.blocks[0].stmts for r in s.results if isinstance(r, Value) and id(r) not in plan.windows):
                plan.rows.add(id(value))
                plan.windows[id(value)] = BufferView(value, Layout.contiguous(value.type.shape))


_FORMS = {"if": _Parser.if_, "for": _Parser.for_, "while": _Parser.while_}
