"""Func -> text. `ir.parser` parses everything that is printed here, and printing the result gives the same bytes.

    func @loss(%w: f64[3], %x: f64[3]) -> f64[] !model.py:11:1 {
      %p: f64[3] = mul %w, %x !12:9
      %l: f64[] = sum %p {axes=[0]} !12:5
    backward:
      %p.bar: f64[3] = broadcast 1.0:f64[] !12:5
      %w.bar: f64[3] = mul %p.bar, %x !12:9
      return %l updating %w = %w.bar
    }

- Types are written at binders. A literal operand is bare if its type follows from its position, else typed (`0.0:f32[3]`): `literal_type`.
- Names come from the user's variables and are made unique; values without a name are numbered in textual order.
- `backward:` and `forward:` mark phase changes; a region begins in the phase of its statement.
- A planned Func shows its buffers: `%h: f64[3] @arena+128 = ...`, and `@%h` or `@%h+2[1,3]` (offset, strides) for a window into one; the
  head has the bytes of the arena, and of the buffers `sized+0`, `sized+1`, ... whose sizes are known only at run time;
  a region that runs in registers has `@registers`.

- A line of more than 140 characters goes on in the next, after a comma.
- A function with symbolic sizes declares them, with the size of the call that was traced and the range of valid sizes:
  `func @f[B=64, T=12 in 6..31](%x: f32[B,T]) -> f32[B-1]`.

Printing never fails on invalid IR: error messages show it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence

from .attributes import attributes_text, scalar_text
from .func import Block, Func, Phase, Stmt, Value
from .layout import Layout
from .location import Location
from .operand import Literal, Operand
from .ops.base import Op
from .ops.control import For, If, While
from .ops.custom import CustomGradient
from .ops.maps import Map
from .plan import Plan
from .records import NamedTuple
from .scanner import FILE, NAME
from .sizes import symbol_text, symbols_of
from .types import BOOL, I64, TensorType

WIDTH = 140
# up to a comma that separates values or types, not one in text, attributes or a type
PARTS = re.compile(r'(?:"(?:[^"\\]|\\.)*"|\{[^{}]*\}|[^",{]|,(?! )|\{)+(?:, )?|, |.')

INDEX = TensorType(I64)
CONDITION = TensorType(BOOL)


def print_func(func: Func, locations: bool = True) -> str:
    """The text of a function, ending in a newline."""
    return "\n".join(map(folded, _Printer(func, locations).lines)) + "\n"


def print_lines(func: Func) -> tuple[list[str], dict[int, int]]:
    """The lines of a function's text, long ones included, and the number of the first line of each statement, by its id."""
    printer = _Printer(func, True)
    return printer.lines, printer.line_of


def folded(line: str) -> str:
    """A line; if it is long, several: all but the last end in a comma, after which the parser goes on in the next."""
    if len(line) <= WIDTH:
        return line
    margin = " " * (len(line) - len(line.lstrip()) + 4)
    out, current = [], ""
    for part in PARTS.findall(line):
        if len(current) + len(part) > WIDTH and current.strip():
            out.append(current.rstrip())
            current = margin
        current += part
    return "\n".join([*out, current])


def print_stmt(func: Func, stmt: Stmt) -> str:
    """One statement of a function (without its regions), as it appears in the function's text."""
    printer = _Printer(func, locations=True)
    return printer.lines[printer.line_of[id(stmt)]].strip()


def print_name(func: Func, value: Operand) -> str:
    """The name of a value in a function's text: `%y.1`."""
    return _Printer(func, locations=False).operand(value, None)


def literal_type(op: type[Op], values: Iterable[TensorType], results: Sequence[TensorType]) -> TensorType | None:
    """The type of a bare literal operand; None if literals must be typed. `values` are the types of the other operands."""
    if not issubclass(op, Map):
        return None
    found = next((t for t in values if t.dtype != BOOL), None)
    return found if found is not None else results[0] if results else None


class Annotated(NamedTuple):
    """A text of the IR without locations, the line of each statement (by its id), and the names of values."""

    lines: list[str]
    line_of: dict[int, int]
    names: Names


def annotated(func: Func) -> Annotated:
    printer = _Printer(func, False)
    return Annotated("\n".join(printer.lines).split("\n"), printer.line_of, printer.names)


class Names:
    """Unique names for values: the user's, with `.1`, `.2`, ... for further values of the same name, or a running number."""

    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}
        self._numbered = 0
        self._twins: dict[int, Operand] = {}

    def of(self, value: Operand) -> str:
        value = self._twins.get(id(value), value)
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = "%" + self._new(getattr(value, "name", None))
        return name

    def share(self, value: Operand, other: Operand) -> None:
        """Give `value` the same name as `other`, now or when that is named."""
        self._twins[id(value)] = other

    def _new(self, hint: str | None) -> str:
        if not hint:
            self._numbered += 1
            return str(self._numbered - 1)
        name = clean_name(hint)
        if name in self._taken:
            stem = re.sub(r"\.[0-9]+$", "", name)
            n = self._next.get(stem, 1)
            while f"{stem}.{n}" in self._taken:
                n += 1
            self._next[stem] = n + 1
            name = f"{stem}.{n}"
        self._taken.add(name)
        return name


def clean_name(hint: str) -> str:
    """A hint as a valid name: `layers/0/W` gives `layers_0_W`."""
    if NAME.fullmatch(hint):
        return hint
    name = re.sub(r"[^\w.]", "_", hint)
    name = ".".join(part for part in name.split(".") if part)
    return name if NAME.fullmatch(name) else f"_{name}"


class _Printer:
    def __init__(self, func: Func, locations: bool) -> None:
        self.names = Names()
        self.lines: list[str] = []
        self.line_of: dict[int, int] = {}
        self.locations = locations
        self.file = func.location.file if func.location else None
        self.plan: Plan | None = func.plan
        self.share_names(func.block)
        self.func(func)

    def share_names(self, block: Block) -> None:
        """A `while` prints its carries once, for both of its blocks; windows may refer to them earlier."""
        for stmt in block.stmts:
            if isinstance(stmt.op, While) and well_formed(stmt):
                condition, body = stmt.blocks
                for ours, theirs in zip(condition.params, body.params, strict=True):
                    if theirs is not ours:
                        self.names.share(theirs, ours)
            for inner in stmt.blocks:
                self.share_names(inner)

    # ---- function, blocks, statements

    def func(self, func: Func) -> None:
        block = func.block
        results, saving = ([x.type for x in xs] for xs in (block.results, block.saving))
        name = func.name if NAME.fullmatch(func.name) else json.dumps(func.name, ensure_ascii=False)
        symbols = ", ".join(symbol_text(symbol) for symbol in symbols_of(func).values())
        name += f"[{symbols}]" if symbols else ""
        head = f"func @{name}{self.params_text(func)} -> {str(results[0]) if len(results) == 1 else _types_text(results)}"
        if saving:
            head += f" saving {_types_text(saving)}"
        if self.plan is not None:
            head += f" arena {self.plan.arena_bytes}"
            head += f" sized [{', '.join(map(str, self.plan.sized))}]" if self.plan.sized else ""
        self.lines.append(f"{head}{self.location_text(func.location, inherit=False)} {{")
        self.stmts(block.stmts, "", "forward")
        updates = ", ".join(f"{self.names.of(p)} = {self.operand(x, p.type)}" for p, x in func.updates)
        self.lines.append("  return" + self.results_text(block, results, saving) + (f" updating {updates}" if updates else ""))
        self.lines.append("}")

    def params_text(self, func: Func) -> str:
        """Given parameters are listed separately; with their types there if they are the last parameters, as they should be."""
        params, given = func.params, func.given
        if not given:
            return f"({self.binders(params)})"
        last = len(params) - len(given)
        if [id(p) for p in params[max(0, last) :]] == [id(g) for g in given]:
            return f"({self.binders(params[:last])}) given ({self.binders(given)})"
        return f"({self.binders(params)}) given ({', '.join(map(self.names.of, given))})"

    def stmts(self, stmts: Sequence[Stmt], indent: str, phase: Phase) -> None:
        for stmt in stmts:
            if stmt.phase != phase:
                phase = stmt.phase
                self.lines.append(f"{indent}{phase}:")
            self.stmt(stmt, indent + "  ")

    def stmt(self, stmt: Stmt, indent: str) -> None:
        results = [r.type for r in stmt.results]
        head = f"{indent}{self.binders(stmt.results)} = {stmt.op.name}" if results else f"{indent}{stmt.op.name}"
        tail = attributes_text(stmt.op, results)
        if self.plan is not None and id(stmt) in self.plan.registers:
            tail += " @registers"
        tail += self.location_text(stmt.location)
        self.line_of[id(stmt)] = len(self.lines)
        if isinstance(stmt.op, CustomGradient):
            self.custom_gradient(stmt.op, head + self.operands_text(stmt, results) + tail, indent)
            return
        if not stmt.blocks:
            self.lines.append(head + self.operands_text(stmt, results) + tail)
            return
        form = _FORMS.get(type(stmt.op)) if well_formed(stmt) else None
        (form or _Printer.region)(self, stmt, head, tail, indent, results)

    def region(self, stmt: Stmt, head: str, tail: str, indent: str, results: list[TensorType]) -> None:
        """`op %a (%p: f64[]) { ... } and { ... }`: any op with blocks; `fuse` has one, without parameters."""
        text = head + self.operands_text(stmt, results) + tail
        for block in stmt.blocks:
            text += f" ({self.binders(block.params)}) {{" if block.params else " {"
            self.block(block, text, indent, stmt.phase, results)
            text = f"{indent}}} and"
        self.lines.append(f"{indent}}}")

    def custom_gradient(self, op: CustomGradient, text: str, indent: str) -> None:
        """`custom_gradient %x, %v, %r {...} pull (%r: f64[], %d: f64[]) { ... } push (...) { ... }`; `later`: not built yet."""
        if op.blocks is None:
            self.lines.append(f"{text} later")
            return
        for word, block in zip(("pull", "push"), op.blocks, strict=True):
            if block is not None:
                self.block(block, f"{text} {word} ({self.binders(block.params)}) {{", indent, "backward", ())
                text = f"{indent}}}"
        self.lines.append(text)

    def if_(self, stmt: Stmt, head: str, tail: str, indent: str, results: list[TensorType]) -> None:
        then, other = stmt.blocks
        self.block(then, f"{head} {self.operand(stmt.args[0], CONDITION)}{tail} {{", indent, stmt.phase, results)
        if other.stmts or other.results or other.saving:
            self.block(other, f"{indent}}} else {{", indent, stmt.phase, results)
        self.lines.append(f"{indent}}}")

    def for_(self, stmt: Stmt, head: str, tail: str, indent: str, results: list[TensorType]) -> None:
        (block,), (start, stop, *inits) = stmt.blocks, stmt.args
        k, *carry = block.params
        index = self.names.of(k) if k.type == INDEX and not self.place_text(k) else self.binder(k)
        head += f" {index} in {self.operand(start, INDEX)}..{self.operand(stop, INDEX)}{self.carry_text(carry, inits)}"
        self.block(block, f"{head}{tail} {{", indent, stmt.phase, [c.type for c in carry])
        self.lines.append(f"{indent}}}")

    def while_(self, stmt: Stmt, head: str, tail: str, indent: str, results: list[TensorType]) -> None:
        condition, body = stmt.blocks
        head += self.carry_text(condition.params, stmt.args)
        self.block(condition, f"{head}{tail} {{", indent, stmt.phase, [CONDITION], "cond")
        self.block(body, f"{indent}}} do {{", indent, stmt.phase, [p.type for p in body.params])
        self.lines.append(f"{indent}}}")

    def block(self, block: Block, head: str, indent: str, phase: Phase, types: Sequence[TensorType], end: str = "yield") -> None:
        """A region from its opening line to its last statement; the caller prints the closing brace."""
        self.lines.append(head)
        self.stmts(block.stmts, indent, phase)
        if block.results or block.saving:
            self.lines.append(f"{indent}  {end}{self.results_text(block, types, ())}")

    # ---- parts of lines

    def results_text(self, block: Block, types: Sequence[TensorType], saving: Sequence[TensorType]) -> str:
        out = self.operands(block.results, types)
        saved = self.operands(block.saving, saving)
        return (f" {out}" if out else "") + (f" saving {saved}" if saved else "")

    def operands_text(self, stmt: Stmt, results: Sequence[TensorType]) -> str:
        if not stmt.args:
            return ""
        type = literal_type(stmt.op.__class__, (a.type for a in stmt.args if not isinstance(a, Literal)), results)
        return " " + ", ".join([self.operand(a, type) for a in stmt.args])

    def operands(self, operands: Sequence[Operand], types: Sequence[TensorType]) -> str:
        return ", ".join(self.operand(x, types[i] if i < len(types) else None) for i, x in enumerate(operands))

    def operand(self, x: Operand, type: TensorType | None) -> str:
        """`type` is the type that a bare literal would get."""
        if not isinstance(x, Literal):
            return self.names.of(x)
        return scalar_text(x.value) if x.type == type else f"{scalar_text(x.value)}:{x.type}"

    def carry_text(self, params: Sequence[Value], inits: Sequence[Operand]) -> str:
        pairs = ", ".join(f"{self.binder(p)} = {self.operand(x, p.type)}" for p, x in zip(params, inits, strict=True))
        return f" carry ({pairs})" if pairs else ""

    def binders(self, values: Sequence[Operand]) -> str:
        return ", ".join([self.binder(v) for v in values])

    def binder(self, value: Operand) -> str:
        return f"{self.names.of(value)}: {value.type}{self.place_text(value) if self.plan is not None else ''}"

    def place_text(self, value: Operand) -> str:
        if self.plan is None:
            return ""
        window = self.plan.windows.get(id(value))
        root = value if window is None else window.root
        place = self.plan.places.get(id(root))
        if self.names.of(root) != self.names.of(value):  # by name: the corresponding parameters of a `while` share one buffer
            owner = self.names.of(root)
        elif place is not None:
            owner = str(place)
        else:
            return ""
        if window is None or window.layout == Layout.contiguous(value.type.shape):
            return f" @{owner}"
        return f" @{owner}+{window.layout.offset}[{','.join(map(str, window.layout.strides))}]"

    def location_text(self, location: Location | None, inherit: bool = True) -> str:
        if location is None or not self.locations:
            return ""
        place = f"{location.line}:{location.column}" if location.column else str(location.line)
        if inherit and location.file == self.file:
            return f" !{place}"
        file = location.file if FILE.fullmatch(location.file) else json.dumps(location.file, ensure_ascii=False)
        return f" !{file}:{place}"


_FORMS: dict[type[Op], Callable[[_Printer, Stmt, str, str, str, list[TensorType]], None]] = {
    If: _Printer.if_,
    For: _Printer.for_,
    While: _Printer.while_,
}


def well_formed(stmt: Stmt) -> bool:
    """Whether a region has the number of operands, blocks and block parameters that its syntax needs."""
    counts = (len(stmt.args), *(len(b.params) for b in stmt.blocks))
    if isinstance(stmt.op, If):
        return counts == (1, 0, 0)
    if isinstance(stmt.op, For):
        return len(counts) == 2 and counts[0] == counts[1] + 1 >= 2
    return not isinstance(stmt.op, While) or counts == (counts[0],) * 3


def _types_text(types: Sequence[TensorType]) -> str:
    return f"({', '.join(map(str, types))})"
