"""Writes a Func as a Python function on NumPy arrays, for people to read and for Python to run.

Every op writes itself (`Op.python`, `Region.flow`), with what `Writer` offers. The writer owns the rest: names, which expressions
are written where they are used, where NumPy may broadcast by itself, which variables are reused or changed in place, and comments with the
user's lines. The text computes what the interpreter does, bit by bit.
"""

from __future__ import annotations

import ast
import linecache
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .effects import block_effects, effects
from .errors import UnsupportedError
from .func import Block, Func, Stmt, Value
from .location import Location
from .operand import Literal, Operand
from .ops.base import Array
from .ops.control import Region
from .ops.maps import Map
from .records import NamedTuple
from .source_names import SourceNames
from .source_regions import Regions
from .source_text import assignment, fill, fits, literal, names_in, quoted, returned, unparse
from .types import BOOL, F64, I64, U64, DType, Shape, StackType, TensorType

LONGEST = 36  # characters of an expression that is written where it is used
DEEPEST = 4  # ops in one expression
SMALL = 64  # elements of an array that is written out


class Code(NamedTuple):
    """An expression, and what it evaluates to."""

    node: ast.expr
    shape: Shape  # may be smaller than the value's, if NumPy broadcasts it
    weak: bool = False  # a Python int: the counter of a loop
    depth: int = 0


class SharedSource:
    """The parts that the functions of one text share: helpers, constants and imports."""

    def __init__(self) -> None:
        self.used: set[str] = set()  # names of helpers and modules
        self.hoisted: dict[str, str] = {}  # name -> the text of its value
        self.arrays: dict[str, Array] = {}  # constants that are too large for the text
        self.names = SourceNames()
        self.functions: list[str] = []
        self._functions: dict[Any, str] = {}
        self._of: dict[int, str] = {}

    def constant(self, array: Array) -> str:
        """The name of a constant of the module."""
        if id(array) not in self._of:
            name = self._of[id(array)] = self.names.fresh("c0")
            self.arrays[name] = array
        return self._of[id(array)]

    def function(self, op: Map, dtypes: tuple[DType, ...], write: Callable[[str], tuple[str, set[str]]]) -> str:
        """The name of a function of the module, which is written when it is first needed."""
        if (op, dtypes) not in self._functions:
            name = self._functions[op, dtypes] = self.names.fresh(op.name)
            text, used = write(name)
            self.functions.append(text)
            self.used |= used
        return self._functions[op, dtypes]

    def hoist(self, hint: str, text: str) -> str:
        for name, known in self.hoisted.items():
            if known == text:
                return name
        name = self.names.fresh(hint)
        self.hoisted[name] = text
        return name


class Writer(Regions):
    """Writes one function. Ops call the public methods; `lines` is the text of the body."""

    def __init__(self, func: Func, module: SharedSource, named: Mapping[int, str], constants: Mapping[int, Array]) -> None:
        self.func = func
        self.module = module
        self.names = SourceNames(module.names)
        self.lines: list[str] = []
        self.indent = 1
        self.stmt: Stmt | None = None
        self.block_at: tuple[Block, int] = (func.block, 0)
        self.left: dict[int, int] = {}  # reads of a value that have not been written yet
        self.inlined: dict[int, Code] = {}
        self.sources: dict[int, Stmt] = {}  # the statement of an inlined value
        self.weak: set[int] = set()
        self.shapes: dict[int, Shape] = {}  # of variables that their readers broadcast
        self.fresh: set[int] = set()  # arrays and lists that nothing else refers to
        self.wanted: dict[int, Operand] = {}  # a value that may be computed in another's variable
        self.saved: dict[int, list[Value]] = {}  # a value -> stacks that it is pushed on
        self.latest: dict[str | None, Operand] = {}  # by the user's name
        self.homes: dict[int, Block] = {}
        self.deep: set[int] = set()  # values that are read in a block other than their own
        self._line: tuple[str, int] | None = None
        self._count(func.block)
        self._read_at(func.block, [new for _, new in func.updates])
        for param in func.params:
            if id(param) in constants:
                self.names.bind(param, module.constant(constants[id(param)]))
            elif id(param) in named:
                self.names.claim(param, named[id(param)])
        for param, new in func.updates:
            if isinstance(new, Value) and new.name == param.name:
                self.names.prefer(new, f"{self.names.of(param)}_new")
        self.params = [self.names.of(p) for p in func.params if id(p) not in constants]

    def _count(self, block: Block) -> None:
        self.homes.update((id(p), block) for p in block.params)
        for stmt in block.stmts:
            self.homes.update((id(r), block) for r in stmt.results)
        for stmt in block.stmts:
            self._read_at(block, read_args(stmt))
            for inner in stmt.blocks:
                self._count(inner)
        self._read_at(block, (*block.results, *block.saving))

    def _read_at(self, block: Block, operands: Sequence[Operand]) -> None:
        for x in operands:
            self.left[id(x)] = self.left.get(id(x), 0) + 1
            if self.homes.get(id(x)) is not block:
                self.deep.add(id(x))

    # ---- text

    def body(self) -> list[str]:
        """The lines of the function's body."""
        self.write_block(self.func.block)
        outputs = self.func.outputs()
        self.lines += self.indented(returned([self.result(x) for x in outputs], self.indent))
        return self.lines

    def indented(self, lines: Sequence[str]) -> list[str]:
        return [f"{'    ' * self.indent}{line}" for line in lines]

    def write_block(self, block: Block) -> None:
        for at, stmt in enumerate(block.stmts):
            self.block_at = (block, at)
            if all(not self.left.get(id(r)) for r in stmt.results) and effects(stmt).is_pure:
                for x in read_args(stmt):
                    self.left[id(x)] -= 1
                continue
            if isinstance(stmt.op, Region):
                self.comment(stmt.location)
                stmt.op.flow(self, stmt)
                self.block_at = (block, at)
            else:
                self.write_stmt(stmt)
            for r in stmt.results:
                for stack in self.saved.get(id(r), ()):
                    self.push(stack, r)

    def comment(self, location: Location | None) -> None:
        """The user's line, where it changes."""
        if location is None or (location.file, location.line) == self._line:
            return
        self._line = (location.file, location.line)
        home = self.func.location.file if self.func.location else location.file
        place = "" if location.file == home else f"{os.path.basename(location.file)}:"
        source = " ".join("".join(c if c.isprintable() else " " for c in linecache.getline(location.file, location.line)).split())
        text = f"# {place}{location.line}: {source}".rstrip().rstrip(":")
        room = 88 - 4 * self.indent
        self.lines += self.indented([text if len(text) <= room else f"{text[: room - 1]}…"])

    def write_stmt(self, stmt: Stmt) -> None:
        self.stmt = stmt
        before = len(self.lines)
        try:
            out = stmt.op.python(self, *stmt.args)
        except UnsupportedError as error:
            raise error.at(stmt.location) from None
        for x in read_args(stmt):
            self.left[id(x)] -= 1
        if out is None:  # written as statements
            self.note(stmt, before)
            return
        if not stmt.results:
            self.run("{}", out)
        else:
            for r, code in zip(stmt.results, [out] if len(stmt.results) == 1 else out, strict=True):
                self.define(stmt, r, code if isinstance(code, Code) else Code(code, r.type.shape))
        self.note(stmt, before)

    def note(self, stmt: Stmt, before: int) -> None:
        """Put the comment before the lines that a statement added, if there are any."""
        added = self.lines[before:]
        if added and stmt.location is not None:
            del self.lines[before:]
            self.comment(stmt.location)
            self.lines += added

    def define(self, stmt: Stmt, value: Operand, code: Code) -> None:
        """Assign a result to its variable, or keep its expression for where it is used."""
        code = code._replace(depth=1 + max((self.inlined[id(x)].depth for x in stmt.args if id(x) in self.inlined), default=0))
        if self.is_inline(stmt, value, code):
            self.inlined[id(value)] = code
            self.sources[id(value)] = stmt
            return
        if not self.left.get(id(value)):
            self.run("{}", code.node)
            return
        if code.weak:
            self.weak.add(id(value))
        if code.shape != value.type.shape:
            self.shapes[id(value)] = code.shape
        self.lines += self.indented(assignment([self.variable(value)], [code.node], self.indent))

    def is_inline(self, stmt: Stmt, value: Operand, code: Code) -> bool:
        block, _ = self.block_at
        if id(value) in self.deep and not is_view(code.node):
            return False
        if is_view(code.node):
            return code.shape != value.type.shape or getattr(value, "name", None) is None
        if getattr(value, "name", None) is not None or self.left.get(id(value)) != 1 or id(value) in self.saved:
            return False
        if effects(stmt).fails and block_effects(block).ordered:
            return False
        return code.depth <= DEEPEST and len(unparse(code.node)) <= LONGEST

    def variable(self, value: Operand) -> str:
        """The name of the variable for a value that is computed now: its own, or one that it may take over."""
        want = self.wanted[id(value)] if id(value) in self.wanted else self.previous(value)
        if want is not None and not self.names.has(value) and self.may_overwrite(self.names.of(want)):
            self.names.share(value, want)
        self.latest[getattr(value, "name", None)] = value
        return self.names.of(value)

    def previous(self, value: Operand) -> Operand | None:
        """A value of the same name that has been read for the last time: `x = x + 1`, as in the user's source."""
        found = self.latest.get(getattr(value, "name", None))
        if found is None or getattr(value, "name", None) is None or self.left.get(id(found)) or not self.names.has(found):
            return None
        return found if self.homes.get(id(found)) is self.block_at[0] and not self.is_param(found) else None

    def is_param(self, x: Operand) -> bool:
        """Whether this is a parameter of the function: its variable is never assigned, so that users can look at it in a debugger."""
        return any(x is p for p in self.func.params)

    def may_overwrite(self, name: str) -> bool:
        """Whether nothing after this statement, in its block, reads what the variable holds before it."""
        block, at = self.block_at
        for x in (*(u for s in block.stmts[at + 1 :] for u in reads(s)), *block.results):
            if self.names.has(x) and self.names.of(x) == name:
                return False
        return not self.is_pending(name)

    def is_pending(self, name: str) -> bool:
        """Whether an expression that has not been written yet reads the variable."""
        return any(
            self.left.get(key, 0) > 0 and any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(code.node))
            for key, code in self.inlined.items()
        )

    def push(self, stack: Value, element: Operand) -> None:
        self.left[id(element)] -= 1
        self.lines += self.indented([f"{self.names.of(stack)}.append({unparse(self.array(element))})"])

    @contextmanager
    def nested(self) -> Iterator[list[str]]:
        """Collect the lines written inside, one level deeper."""
        lines, self.lines = self.lines, []
        self.indent += 1
        try:
            yield self.lines
        finally:
            self.lines = lines
            self.indent -= 1

    # ---- operands, for ops

    def code(self, x: Operand) -> Code:
        if isinstance(x, Literal):
            return Code(scalar(x.value, x.type.dtype), ())
        return self.inlined.get(id(x)) or Code(ast.Name(self.names.of(x)), self.shapes.get(id(x), x.type.shape), id(x) in self.weak)

    def array(self, x: Operand) -> ast.expr:
        """An operand with its own shape and dtype."""
        code = self.code(x)
        node = typed(code, x) if code.weak or isinstance(x, Literal) else code.node
        return node if isinstance(x.type, StackType) or code.shape == x.type.shape else self.spread(node, x.type.shape)

    def result(self, x: Operand) -> ast.expr:
        """The same for what is returned or carried: a new array, if it is a constant."""
        return filled(x) if isinstance(x, Literal) and x.type.shape else self.array(x)

    def elements(self, *args: Operand) -> list[ast.expr]:
        """The operands of an elementwise op: NumPy broadcasts them, and Python numbers take their dtype from the others."""
        shape = args[0].type.shape
        codes = [self.code(x) for x in args]
        out = []
        for x, code in zip(args, codes):
            plain = code.weak or isinstance(x, Literal)
            others = [y for y, c in zip(args, codes) if y.type.dtype == x.type.dtype and not c.weak and not isinstance(y, Literal)]
            known = others or (x.type.dtype in (F64, I64, BOOL) and not all(c.weak or isinstance(y, Literal) for y, c in zip(args, codes)))
            out.append(typed(code, x) if plain and not known and not self.stays_weak(codes, args) else code.node)
        if np.broadcast_shapes(*(c.shape for c in codes)) != shape:
            first = next((i for i, x in enumerate(args) if not isinstance(x, Literal)), 0)
            out[first] = self.spread(typed(codes[first], args[first]) if codes[first].weak else out[first], shape)
        return out

    def stays_weak(self, codes: Sequence[Code], args: Sequence[Operand]) -> bool:
        """Whether this is arithmetic on loop counters, which stay Python ints."""
        counts = self.stmt is not None and getattr(self.stmt.op, "counts", False)
        return counts and any(c.weak for c in codes) and all(c.weak or isinstance(x, Literal) for c, x in zip(codes, args))

    def elementwise(self, template: str, *args: Operand) -> Code:
        """The result of an elementwise op."""
        weak = self.stays_weak([self.code(x) for x in args], args)
        return Code(self(template, *self.elements(*args)), args[0].type.shape, weak)

    def indices(self, *args: Operand) -> list[ast.expr]:
        """Operands that index together: NumPy broadcasts them."""
        loose = np.broadcast_shapes(*(self.code(x).shape for x in args)) == args[0].type.shape
        return [self.index(x, loose) for x in args]

    def index(self, x: Operand, loose: bool = False) -> ast.expr:
        """An operand as an index: a Python int where one will do."""
        if isinstance(x, Literal) and not x.type.shape:
            return literal(int(x.value))
        code = self.code(x)
        node = code.node if code.weak or loose else self.array(x)
        if x.type.dtype == U64:  # NumPy would wrap large ones around
            return self("np.minimum({}, {}).astype(np.int64)", node, literal(2**63 - 1))
        return node

    def atom(self, x: Operand, hint: str = "t0") -> ast.expr:
        """An operand that is read several times: a variable."""
        node = self.array(x)
        if isinstance(node, ast.Name | ast.Constant):
            return node
        name = self.names.fresh(hint)
        self.lines += self.indented(assignment([name], [node], self.indent))
        return ast.Name(name)

    def inside(self, x: Operand) -> Stmt | None:
        """The statement of an operand that is written only here."""
        return self.sources.get(id(x)) if self.left.get(id(x)) == 1 and id(x) in self.inlined else None

    # ---- what ops write

    def __call__(self, template: str, *nodes: ast.expr) -> ast.expr:
        """An expression: each `{}` in the template is replaced by a node, in order."""
        self.module.used |= names_in(template, len(nodes))
        return fill(template, *nodes)

    def value(self, value: Any) -> ast.expr:
        return literal(value)

    def dtype(self, dtype: DType) -> ast.expr:
        return self(dtype_name(dtype))

    def loose(self, node: ast.expr, shape: Sequence[int]) -> Code:
        """An expression that is smaller than the result: its readers broadcast it."""
        return Code(node, tuple(shape))

    def filled(self, value: Any, dtype: DType, shape: Sequence[int]) -> ast.expr:
        """A new array."""
        return filled(Literal(value, TensorType(dtype, shape)))

    def spread(self, node: ast.expr, shape: Shape) -> ast.expr:
        return self("np.broadcast_to({}, {})", node, literal(shape))

    def run(self, template: str, *nodes: ast.expr) -> None:
        """A line: an assignment or a call, whose operands need no parentheses."""
        self.module.used |= {"np"}
        line = template.format(*map(unparse, nodes))
        self.lines += self.indented([line if fits(line, self.indent) else f"{line}  # fmt: skip"])

    def new(self, node: ast.expr) -> ast.expr:
        """A new array for the result of this statement, which following lines fill."""
        assert self.stmt is not None
        (result,) = self.stmt.results
        self.fresh.add(id(result))
        self.lines += self.indented(assignment([self.variable(result)], [node], self.indent))
        return ast.Name(self.names.of(result))

    def changed(self, x: Operand, copy: str) -> ast.expr:
        """The variable of `x`, to be changed in place into the result of this statement; a `copy` of it, if others read it."""
        assert self.stmt is not None
        (result,) = self.stmt.results
        if isinstance(x, Literal):
            return self.new(filled(x))
        if id(x) in self.fresh and self.left.get(id(x)) == 1 and not self.is_pending(self.names.of(x)):
            self.fresh.add(id(result))
            self.names.share(result, x)
            return ast.Name(self.names.of(result))
        return self.new(self(copy, self.array(x)))

    def temporary(self, hint: str, node: ast.expr) -> ast.expr:
        name = self.names.fresh(hint)
        self.lines += self.indented(assignment([name], [node], self.indent))
        return ast.Name(name)

    def named(self, hint: str, node: ast.expr) -> ast.expr:
        """A text that may be written several times: a name."""
        return node if isinstance(node, ast.Name) else self.temporary(hint, node)

    def constant(self, array: Array) -> ast.expr:
        """A constant array: written out if it is small, else kept beside the text."""
        values = array.tolist()
        node = self("np.array({}, {})", literal(values), self.dtype(array.dtype))
        if array.dtype in (F64, I64, BOOL):
            node = self("np.array({})", literal(values))
        same = array.size and np.asarray(values, array.dtype).tobytes() == array.tobytes()
        if array.size > SMALL or not same:
            return ast.Name(self.module.constant(array))
        text = unparse(node)
        return node if len(text) <= 48 else ast.Name(self.module.hoist("c0", text))

    def formula(self, op: Map, *args: Operand) -> ast.expr:
        """A call of a function that computes an elementwise op, step by step as its lowering does."""
        from .source_formula import formula  # noqa: PLC0415 - few programs contain such an op

        dtypes = tuple(x.type.dtype for x in args)
        name = self.module.function(op, dtypes, lambda name: formula(op, name, dtypes))
        given = [typed(self.code(x), x) if isinstance(x, Literal) else self.array(x) for x in args]
        return self(f"{name}({', '.join(['{}'] * len(given))})", *given)

    def hoist(self, hint: str, node: ast.expr) -> ast.expr:
        """A constant of the module."""
        return ast.Name(self.module.hoist(hint, unparse(node)))

    def text(self, value: str) -> str:
        return quoted(value)


def read_args(stmt: Stmt) -> list[Operand]:
    """The operands that a statement's text reads."""
    return [x for i, x in enumerate(stmt.args) if i not in stmt.op.unread]


def reads(stmt: Stmt) -> Iterator[Operand]:
    yield from read_args(stmt)
    for block in stmt.blocks:
        yield from block.uses()


def is_view(node: ast.expr) -> bool:
    """Whether an expression is as short as a name: a name or number itself, its transpose, or with axes inserted."""
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    if isinstance(node, ast.Attribute):
        return isinstance(node.value, ast.Name) and (node.attr == "T" or node.value.id == "np")
    if isinstance(node, ast.Subscript):
        keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return is_view(node.value) and all(isinstance(k, ast.Slice | ast.Constant) for k in keys)
    if isinstance(node, ast.Call):  # np.float32(0.5), np.arange(3)
        return all(isinstance(a, ast.Constant) for a in node.args) and not node.keywords
    return isinstance(node, ast.Name | ast.Constant)


def dtype_name(dtype: DType) -> str:
    return "np.bool_" if dtype == BOOL else f"np.{dtype.name}"


def scalar(value: Any, dtype: DType) -> ast.expr:
    """A number, as short as it can be read back with its dtype."""
    item = value.item()
    if dtype.kind == "f" and dtype != F64:
        short = float(str(value))
        item = short if dtype.type(short).tobytes() == value.tobytes() else item
    return literal(item)


def typed(code: Code, x: Operand) -> ast.expr:
    """A Python number as a NumPy scalar."""
    return fill(f"{dtype_name(x.type.dtype)}({{}})", code.node)


def filled(x: Literal) -> ast.expr:
    """A new array filled with a constant."""
    shape: Any = x.type.shape[0] if len(x.type.shape) == 1 else x.type.shape
    dtype = "" if x.type.dtype == F64 else f", {dtype_name(x.type.dtype)}"
    if x.value.tobytes() == bytes(x.type.dtype.itemsize):  # not -0.0
        return fill(f"np.zeros({{}}{dtype})", literal(shape))
    return fill(f"np.full({{}}, {{}}, {dtype_name(x.type.dtype)})", literal(shape), scalar(x.value, x.type.dtype))
