"""Straight-line LLVM IR for `width` elements at a time.

This module spells scalar and vector instructions. A `Lanes` writes into a `Text`, the body of one LLVM function, and returns `Reg`s.
Memory access, loops and calculus are elsewhere: in `memory.py`, `nest.py`, `loop_kernel.py` and the ops.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Sequence

import numpy as np

from adjit.ir.location import Location
from adjit.ir.records import NamedTuple
from adjit.ir.target import Target
from adjit.ir.types import BOOL, F32, F64, I64, DType, computed

from . import halves
from .marks import Marked


class Types(dict[DType, str]):
    """The types of LLVM by dtype; bfloat16, which NumPy supports if ml_dtypes is imported, is an integer in registers."""

    def __missing__(self, dtype: DType) -> str:
        if dtype.kind != "V":
            raise KeyError(dtype)
        return "i16"


LLVM_TYPE: dict[DType, str] = Types({
    np.dtype(code): text
    for code, text in {
        "f4": "float", "f8": "double", "?": "i1",
        "i1": "i8", "i2": "i16", "i4": "i32", "i8": "i64",
        "u1": "i8", "u2": "i16", "u4": "i32", "u8": "i64", "f2": "i16",
    }.items()
})  # fmt: skip

LOW_HALF = 27  # bits of a double's significand in its lower half
WHOLE: dict[DType, float] = {F32: 2.0**23, F64: 2.0**52}  # from here on, all floats are integers


class Reg(NamedTuple):
    """An SSA register (or constant) holding `width` elements of one dtype; bools are `i1`."""

    name: str
    dtype: DType


class Outlined(NamedTuple):
    """A function called by others, its declaration for callers, and the declarations that it needs."""

    definition: str
    declaration: str
    declares: frozenset[str]


class Text:
    """The body of one LLVM function while it is emitted, and the declarations that it needs."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.lines: list[str] = Marked() if target.debug_lines else []
        self.declares: set[str] = set()
        self.block = "entry"  # label of the current basic block, needed by phis
        self.outlined: dict[str, Outlined] | None = None  # vector math functions that are called rather than inlined
        self.slots: list[str] = []  # stack slots, allocated once at the top of the function
        self.may_look = False  # whether long loops may check for signals, which needs the error record, %error
        self.looks = False  # whether some do
        self.returns_code = False  # whether the function returns an error code, or void
        self.repeated = 0.0  # instructions repeated by loops, in addition to the emitted lines
        self.unseen = 0.0  # those of them since the last check for signals
        self._count = 0

    def locate(self, location: Location | None) -> Location | None:
        """Attribute the following instructions to this line of the user's source, if lines are recorded. Return the previous line."""
        lines = self.lines
        if not isinstance(lines, Marked):
            return None
        before, lines.location = lines.location, location
        return before

    @property
    def location(self) -> Location | None:
        return self.lines.location if isinstance(self.lines, Marked) else None

    @property
    def work(self) -> float:
        """Approximate number of instructions that the text executes."""
        return len(self.lines) + self.repeated

    @property
    def unseen_work(self) -> float:
        return len(self.lines) + self.unseen

    def charge(self, work: float, seen: bool = False) -> None:
        """Count the work of a function called here; `seen`: it checks for signals itself."""
        self.repeated += work
        self.unseen += 0.0 if seen else work

    def reserve(self, type: str) -> str:
        """Reserve a stack slot, allocated outside all loops."""
        name = self.fresh()
        self.slots.append(f"{name} = alloca {type}")
        return name

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def fresh_label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def put(self, line: str) -> None:
        self.lines.append(line)

    def define(self, instruction: str) -> str:
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"{name} = {instruction}")
        return name

    def jump(self, label: str) -> None:
        self.lines.append(f"br label %{label}")

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.block = label


NEVER = ("false", "splat (i1 false)")
FLOAT, DOUBLE = struct.Struct(">f"), struct.Struct(">d")


def is_number(name: str) -> bool:
    """Whether this is the spelling of a floating-point constant that is not NaN."""
    _, found, bits = name.partition("0x")
    return name[0] != "%" and found == "0x" and int(bits[:16], 16) & 0x7FFF_FFFF_FFFF_FFFF <= 0x7FF0_0000_0000_0000


def constant(dtype: DType, value: float | int | bool) -> str:
    """The LLVM spelling of one scalar constant, exact to the bit; 16-bit floats are stored as integers."""
    if computed(dtype) != dtype:
        return str(int(np.float32(value).astype(dtype).view(np.uint16)))
    if dtype.kind == "f":
        exact = float(value)
        if dtype.itemsize == 4:
            try:
                (exact,) = FLOAT.unpack(FLOAT.pack(exact))
            except OverflowError:
                exact = math.copysign(math.inf, exact)
        return f"0x{DOUBLE.pack(exact).hex().upper()}"
    if dtype == BOOL:
        return "true" if value else "false"
    return str(int(value))


class Lanes:
    """Emits arithmetic on `width` lanes. Floating arithmetic allows contraction (FMA) unless `strict`."""

    def __init__(self, text: Text, width: int = 1, strict: bool = False) -> None:
        self.text = text
        self.width = width
        self.flags = "" if strict else "contract "

    # ---- types and constants

    def type(self, dtype: DType) -> str:
        scalar = LLVM_TYPE[dtype]
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"

    def const(self, dtype: DType, value: float | int | bool) -> Reg:
        text = constant(dtype, value)
        return Reg(text if self.width == 1 else f"splat ({LLVM_TYPE[dtype]} {text})", dtype)

    def like(self, x: Reg, value: float | int | bool) -> Reg:
        return self.const(x.dtype, value)

    # ---- generic instruction forms

    def _binary(self, opcode: str, a: Reg, b: Reg) -> Reg:
        return Reg(self.text.define(f"{opcode} {self.type(a.dtype)} {a.name}, {b.name}"), a.dtype)

    def _float(self, opcode: str, a: Reg, b: Reg) -> Reg:
        return self._binary(f"{opcode} {self.flags}".rstrip(), a, b)

    def intrinsic(self, name: str, *args: Reg, result: DType | None = None) -> Reg:
        """Call `llvm.<name>` overloaded on the type of the first argument."""
        dtype = args[0].dtype
        suffix = ("f" if dtype.kind == "f" else "i") + str(1 if dtype == BOOL else dtype.itemsize * 8)
        if self.width > 1:
            suffix = f"v{self.width}{suffix}"
        out = result or dtype
        types = ", ".join(self.type(a.dtype) for a in args)
        self.text.declares.add(f"declare {self.type(out)} @llvm.{name}.{suffix}({types})")
        operands = ", ".join(f"{self.type(a.dtype)} {a.name}" for a in args)
        return Reg(self.text.define(f"call {self.type(out)} @llvm.{name}.{suffix}({operands})"), out)

    # ---- arithmetic, by dtype

    def add(self, a: Reg, b: Reg) -> Reg:
        return self._float("fadd", a, b) if a.dtype.kind == "f" else self._binary("or" if a.dtype == BOOL else "add", a, b)

    def sub(self, a: Reg, b: Reg) -> Reg:
        return self._float("fsub", a, b) if a.dtype.kind == "f" else self._binary("sub", a, b)

    def mul(self, a: Reg, b: Reg) -> Reg:
        return self._float("fmul", a, b) if a.dtype.kind == "f" else self._binary("and" if a.dtype == BOOL else "mul", a, b)

    def multiply_add(self, a: Reg, b: Reg, c: Reg) -> Reg:
        """a * b + c as one instruction, if the CPU has it: see `fma` for the one that is always exact."""
        return self.intrinsic("fmuladd", a, b, c) if a.dtype.kind == "f" and self.flags else self.add(self.mul(a, b), c)

    def fdiv(self, a: Reg, b: Reg) -> Reg:
        return self._float("fdiv", a, b)

    def neg(self, a: Reg) -> Reg:
        if a.dtype.kind == "f":
            return Reg(self.text.define(f"fneg {self.type(a.dtype)} {a.name}"), a.dtype)
        return self.sub(self.like(a, 0), a)

    def mad(self, a: Reg, b: Reg, c: Reg) -> Reg:
        """a * b + c, with one rounding if the CPU has FMA, and two otherwise."""
        return self.intrinsic("fmuladd", a, b, c)

    def fma(self, a: Reg, b: Reg, c: Reg) -> Reg:
        """a * b + c with the exact product: with one rounding if the CPU has FMA.

        Otherwise (libm's `fma` would be a call per lane) float32 is computed in float64. For float64 the rounding error of the product is
        added to the sum: exact where the product and c cancel, as in remainders, and within an ULP in general; parts below the smallest
        subnormal are lost.
        """
        if self.text.target.fma:
            return self.intrinsic("fma", a, b, c)
        strict = Lanes(self.text, self.width, strict=True)
        if a.dtype == F32:
            x, y, z = (strict.convert(each, F64) for each in (a, b, c))
            return strict.convert(strict.add(strict.mul(x, y), z), F32)
        product = strict.mul(a, b)
        error = strict._product_error(a, b, product)
        known = Reg(self.text.define(f"fcmp ord {self.type(a.dtype)} {error.name}, {error.name}"), BOOL)  # it is NaN for infinities
        return strict.add(strict.add(product, c), strict.select(known, error, strict.like(error, 0)))

    def _product_error(self, a: Reg, b: Reg, product: Reg) -> Reg:
        """a * b - product, by Dekker's method, from halves whose products are exact."""
        (a_high, a_low), (b_high, b_low) = self._halves(a), self._halves(b)
        rest = self.sub(self.mul(a_high, b_high), product)
        for x, y in ((a_high, b_low), (a_low, b_high), (a_low, b_low)):
            rest = self.add(rest, self.mul(x, y))
        return rest

    def _halves(self, a: Reg) -> tuple[Reg, Reg]:
        """Split a into a sum of two with half as many bits each: the upper one is rounded to nearest, so the lower one may be negative."""
        cut = 1 << LOW_HALF
        rounded = self.add(self.bitcast(a, I64), self.const(I64, cut // 2))
        high = self.bitcast(self.and_(rounded, self.const(I64, -cut)), F64)
        return high, self.sub(a, high)

    def fabs(self, a: Reg) -> Reg:
        return self.intrinsic("fabs", a)

    def copysign(self, magnitude: Reg, sign: Reg) -> Reg:
        return self.intrinsic("copysign", magnitude, sign)

    def sqrt(self, a: Reg) -> Reg:
        return self.intrinsic("sqrt", a)

    def floor(self, a: Reg) -> Reg:
        return self._rounded("floor", a)

    def ceil(self, a: Reg) -> Reg:
        return self._rounded("ceil", a)

    def rint(self, a: Reg) -> Reg:
        """Round half to even."""
        return self._rounded("rint", a)

    def trunc(self, a: Reg) -> Reg:
        return self._rounded("trunc", a)

    def _rounded(self, how: str, a: Reg) -> Reg:
        """Round to an integer. Without an instruction for it, LLVM would call libm for each lane.

        Instead, adding and subtracting a number whose ULP is 1 rounds half to even, and a comparison with `a` corrects that by 1.
        """
        if self.text.target.rounding:
            return self.intrinsic(how, a)
        strict = Lanes(self.text, self.width, strict=True)
        if how == "ceil":
            return strict.neg(strict._rounded("floor", strict.neg(a)))
        zero, size, whole = strict.like(a, 0), strict.fabs(a), strict.like(a, WHOLE[a.dtype])
        shift = strict.select(strict.compare("lt", size, whole), whole, zero)  # larger values are integers already, or NaN
        nearest = strict.sub(strict.add(size, shift), shift)
        if how == "floor":
            nearest, size = strict.copysign(nearest, a), a
        if how != "rint":
            nearest = strict.sub(nearest, strict.select(strict.compare("gt", nearest, size), strict.like(a, 1), zero))
        return nearest if how == "floor" else strict.copysign(nearest, a)

    # ---- comparisons and selection

    def compare(self, predicate: str, a: Reg, b: Reg) -> Reg:
        """`predicate` is eq, ne, lt, le, gt or ge; comparisons with NaN are false, except `ne`."""
        kind = a.dtype.kind
        if kind == "f":
            code = f"fcmp {'une' if predicate == 'ne' else 'o' + predicate}"
        elif predicate in ("eq", "ne"):
            code = f"icmp {predicate}"
        else:
            code = f"icmp {'s' if kind == 'i' else 'u'}{predicate}"
        return Reg(self.text.define(f"{code} {self.type(a.dtype)} {a.name}, {b.name}"), BOOL)

    def unordered(self, a: Reg, b: Reg) -> Reg:
        """True where a or b is NaN."""
        if is_number(a.name) and is_number(b.name):
            return self.const(BOOL, False)
        return Reg(self.text.define(f"fcmp uno {self.type(a.dtype)} {a.name}, {b.name}"), BOOL)

    def select(self, condition: Reg, a: Reg, b: Reg) -> Reg:
        if condition.name in NEVER:
            return b
        ty = self.type(a.dtype)
        return Reg(self.text.define(f"select {self.type(BOOL)} {condition.name}, {ty} {a.name}, {ty} {b.name}"), a.dtype)

    # ---- bits

    def and_(self, a: Reg, b: Reg) -> Reg:
        return self._binary("and", a, b)

    def or_(self, a: Reg, b: Reg) -> Reg:
        return self._binary("or", a, b)

    def xor(self, a: Reg, b: Reg) -> Reg:
        return self._binary("xor", a, b)

    def shl(self, a: Reg, b: Reg) -> Reg:
        return self._binary("shl", a, b)

    def shr(self, a: Reg, b: Reg) -> Reg:
        """Arithmetic shift for signed dtypes, logical for unsigned."""
        return self._binary("ashr" if a.dtype.kind == "i" else "lshr", a, b)

    def bitcast(self, a: Reg, dtype: DType) -> Reg:
        return Reg(self.text.define(f"bitcast {self.type(a.dtype)} {a.name} to {self.type(dtype)}"), dtype)

    # ---- tables

    def lookup(self, index: Reg, table: Sequence[float], dtype: DType) -> Reg:
        """`table[index % 16]`, 16 floats of `dtype`; `index` holds integers of the same width.

        A target with tables has an instruction for a register of lanes. Others read one number a lane from memory.
        """
        registers, rest = divmod(self.width * dtype.itemsize, 64)
        if not self.text.target.tables or rest:
            return self._gathered(self.and_(index, self.like(index, 15)), table, dtype)
        if registers == 1:
            return Reg(self._permuted(index.name, table, dtype), dtype)
        count = self.width // registers
        part = Lanes(self.text, count)
        parts = [part._permuted(self._lanes_of(index, range(first, first + count)), table, dtype) for first in range(0, self.width, count)]
        while len(parts) > 1:
            count *= 2
            half, order = f"<{count // 2} x {LLVM_TYPE[dtype]}>", ", ".join(f"i32 {i}" for i in range(count))
            joined = (
                f"shufflevector {half} {a}, {half} {b}, <{count} x i32> <{order}>" for a, b in zip(parts[::2], parts[1::2], strict=True)
            )
            parts = [self.text.define(each) for each in joined]
        return Reg(parts[0], dtype)

    def _lanes_of(self, x: Reg, lanes: range) -> str:
        order = ", ".join(f"i32 {i}" for i in lanes)
        return self.text.define(f"shufflevector {self.type(x.dtype)} {x.name}, {self.type(x.dtype)} poison, <{len(lanes)} x i32> <{order}>")

    def _permuted(self, index: str, table: Sequence[float], dtype: DType) -> str:
        """By AVX-512's permutations of one register of floats, or two of doubles."""
        scalar, vector, indices = LLVM_TYPE[dtype], self.type(dtype), f"<{self.width} x i{dtype.itemsize * 8}>"
        low, *high = (
            f"{vector} <{', '.join(f'{scalar} {constant(dtype, x)}' for x in table[first : first + self.width])}>"
            for first in range(0, 16, self.width)
        )
        callee = "vpermi2var.pd" if high else "permvar.sf"
        types = ", ".join([vector, indices, *[vector] * len(high)])
        self.text.declares.add(f"declare {vector} @llvm.x86.avx512.{callee}.512({types})")
        operands = ", ".join([low, f"{indices} {index}", *high])
        return self.text.define(f"call {vector} @llvm.x86.avx512.{callee}.512({operands})")

    def _gathered(self, index: Reg, table: Sequence[float], dtype: DType) -> Reg:
        scalar, bits = LLVM_TYPE[dtype], LLVM_TYPE[index.dtype]
        numbers = ", ".join(f"{scalar} {constant(dtype, x)}" for x in table)
        name = "@adjit.table." + f"{zlib.crc32(numbers.encode()):08x}"
        self.text.declares.add(f"{name} = private unnamed_addr constant [16 x {scalar}] [{numbers}]")
        vector = "poison"
        for lane in range(self.width):
            one = index.name if self.width == 1 else self.text.define(f"extractelement {self.type(index.dtype)} {index.name}, i32 {lane}")
            address = self.text.define(f"getelementptr {scalar}, ptr {name}, {bits} {one}")
            value = self.text.define(f"load {scalar}, ptr {address}")
            if self.width == 1:
                return Reg(value, dtype)
            vector = self.text.define(f"insertelement {self.type(dtype)} {vector}, {scalar} {value}, i32 {lane}")
        return Reg(vector, dtype)

    # ---- integer division: unchecked, the operands must be safe (no zero divisor, no overflow)

    def idiv(self, a: Reg, b: Reg) -> Reg:
        return self._binary("sdiv" if a.dtype.kind == "i" else "udiv", a, b)

    def irem(self, a: Reg, b: Reg) -> Reg:
        return self._binary("srem" if a.dtype.kind == "i" else "urem", a, b)

    # ---- conversions

    def convert(self, a: Reg, dtype: DType) -> Reg:
        """NumPy's `astype`, except that a float outside the integer's range saturates (and NaN becomes 0)."""
        source = a.dtype
        if source == dtype:
            return a
        if computed(source) != source:
            return self.convert(halves.widened(self, a), dtype)
        if computed(dtype) != dtype:
            return halves.narrowed(self, self.convert(a, F32), dtype)
        if dtype == BOOL:
            zero = self.like(a, 0)
            if source.kind == "f":
                return Reg(self.text.define(f"fcmp une {self.type(source)} {a.name}, {zero.name}"), BOOL)
            return self.compare("ne", a, zero)
        if dtype.kind == "f":
            if source.kind == "f":
                code = "fpext" if dtype.itemsize > source.itemsize else "fptrunc"
            else:
                code = "sitofp" if source.kind == "i" else "uitofp"
        elif source.kind == "f":
            return self.intrinsic_convert("fptosi.sat" if dtype.kind == "i" else "fptoui.sat", a, dtype)
        elif source != BOOL and dtype.itemsize == source.itemsize:
            return Reg(a.name, dtype)
        elif source != BOOL and dtype.itemsize < source.itemsize:
            code = "trunc"
        else:
            code = "sext" if source.kind == "i" else "zext"
        return Reg(self.text.define(f"{code} {self.type(source)} {a.name} to {self.type(dtype)}"), dtype)

    def intrinsic_convert(self, name: str, a: Reg, dtype: DType) -> Reg:
        lanes = f"v{self.width}" if self.width > 1 else ""
        callee = f"@llvm.{name}.{lanes}i{dtype.itemsize * 8}.{lanes}f{a.dtype.itemsize * 8}"
        out, into = self.type(a.dtype), self.type(dtype)
        self.text.declares.add(f"declare {into} {callee}({out})")
        return Reg(self.text.define(f"call {into} {callee}({out} {a.name})"), dtype)
