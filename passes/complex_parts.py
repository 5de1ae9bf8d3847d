"""The pass `split_complex`, which follows differentiation: after it, no value of a function is complex.

Every complex value becomes two values of its shape, also where loops carry or save it. Parameters, results and updated variables are
arrays of the caller, where the parts of a number are adjacent: they become real arrays with a last axis of size 2, which is the same
memory. Ops that move elements, or are linear with real coefficients, act on each part; `ir.ops.pairs` has the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from adjit.ir import ops
from adjit.ir.active import current_builder
from adjit.ir.builder import Builder
from adjit.ir.errors import UnsupportedError, VerifyError
from adjit.ir.func import Block, Func, Stmt, Value
from adjit.ir.operand import Literal, Operand
from adjit.ir.ops import pairs
from adjit.ir.ops.arithmetic import Add, Div, Neg, Sub
from adjit.ir.ops.base import Op, apply
from adjit.ir.ops.bases import Exp2, Log2, Log10
from adjit.ir.ops.complex import Complex, Conj, Imag, Real
from adjit.ir.ops.convolution import Convolve, ConvolveFilter, ConvolveInput
from adjit.ir.ops.create import Constant
from adjit.ir.ops.effects import Print
from adjit.ir.ops.fft import Fft
from adjit.ir.ops.index import Gather, ScatterAdd, ScatterSet
from adjit.ir.ops.join import Concatenate, SetSlice
from adjit.ir.ops.linalg import Matmul
from adjit.ir.ops.logic import Equal, NotEqual
from adjit.ir.ops.maps import Cast, Copy, Mul, StrongMul, Where, cast
from adjit.ir.ops.pairs import Pair, Parted, joined, parted
from adjit.ir.ops.powers import IntegerPow, Power, multiplied
from adjit.ir.ops.reduce import Prod, Sum
from adjit.ir.ops.scan import Cumprod, Cumsum, Recurrence
from adjit.ir.ops.shape import Pad, Reshape, inverse
from adjit.ir.ops.stack import StackAccumulate, StackAdd, StackLength, StackRead, StackZeros
from adjit.ir.types import BOOL, StackType, TensorType, real_dtype

from .conjugates import conjugate_operands
from .fourier import transformed
from .rewrite import Renaming

Rule: TypeAlias = Callable[..., Any]  # the op and its arguments, pairs where they are complex, to its result


def in_parts(func: Func) -> Func:
    return _Splitting().func(conjugate_operands(func))


def is_complex(x: Operand) -> bool:
    return x.type.dtype.kind == "c"


def part_type(type: TensorType) -> TensorType:
    """The type of each part of complex values; a stack of complex arrays becomes two stacks."""
    element = TensorType(real_dtype(type.dtype), type.shape)
    return StackType(element) if isinstance(type, StackType) else element


def interleaved_type(type: TensorType) -> TensorType:
    """A complex array as its caller stores it: the two parts of each number are adjacent."""
    return TensorType(real_dtype(type.dtype), (*type.shape, 2))


class _Splitting:
    def __init__(self) -> None:
        self.parts: dict[int, Pair] = {}
        self.renaming = Renaming()  # of real values

    def func(self, func: Func) -> Func:
        table = {id(p): Value(interleaved_type(p.type), p.name) if is_complex(p) else p for p in func.params}
        with Builder([table[id(p)] for p in func.params]) as builder:
            for old in func.params:
                if is_complex(old):
                    self.parts[id(old)] = parted(table[id(old)])
            self.stmts(func.block.stmts, builder)
            results, saving = ([self.outward(x) for x in xs] for xs in (func.results, func.block.saving))
            updates = tuple((table[id(p)], self.outward(new)) for p, new in func.updates)
            block = builder.finish(results, saving)
        return func.replace(block=block, given=tuple(table[id(g)] for g in func.given), updates=updates)

    def outward(self, x: Operand) -> Operand:
        return joined(self[x]) if is_complex(x) else self.renaming[x]

    def __getitem__(self, x: Operand) -> Pair:
        """The parts of a complex operand."""
        if isinstance(x, Literal):
            value, type = np.asarray(x.value), part_type(x.type)
            return Pair(Literal(value.real[()], type), Literal(value.imag[()], type))
        return self.parts[id(x)]

    def flat(self, operands: Sequence[Operand]) -> list[Operand]:
        """The operands, both parts of complex ones."""
        return [y for x in operands for y in (self[x] if is_complex(x) else (self.renaming[x],))]

    def define(self, values: Sequence[Any]) -> list[Value]:
        """New values for both parts of complex ones; real ones stay."""
        out: list[Value] = []
        for v in values:
            if not is_complex(v):
                out.append(v)
                continue
            made = Pair(*(Value(part_type(v.type), f"{v.name}.{part}" if v.name else None) for part in ("re", "im")))
            self.parts[id(v)] = made
            out += made  # type: ignore[arg-type]
        return out

    # ---- statements

    def stmts(self, stmts: Sequence[Stmt], builder: Builder) -> None:
        for stmt in stmts:
            if stmt.blocks:
                blocks = tuple(map(self.block, stmt.blocks))
                results = tuple(self.define(stmt.results))
                builder.stmts.append(stmt.replace(args=tuple(self.flat(stmt.args)), blocks=blocks, results=results))
            elif any(map(is_complex, stmt.args)) or any(map(is_complex, stmt.results)):
                with builder.at(stmt.location, stmt.phase, stmt.origin):
                    self.rewrite(stmt)
            else:
                builder.stmts.append(self.renaming.stmt(stmt))

    def block(self, block: Block) -> Block:
        params = self.define(block.params)
        with Builder(params) as builder:
            self.stmts(block.stmts, builder)
            return builder.finish(self.flat(block.results), self.flat(block.saving))

    def rewrite(self, stmt: Stmt) -> None:
        op = stmt.op
        rule: Rule | None = RULES.get(type(op), each_part if op.is_view else None)
        if rule is None:
            raise UnsupportedError(f"{op.name}: complex numbers are not supported here").at(stmt.location)
        args: list[Pair | Operand] = [self[a] if is_complex(a) else self.renaming[a] for a in stmt.args]
        out: Any = rule(op, *args)
        if not stmt.results:
            return
        result = stmt.result
        if is_complex(result):
            if not all(isinstance(part, Value | Literal) for part in out):  # from literals, rules compute arrays
                out = Pair(*map(self.standing, out))
            if any(part.type != part_type(result.type) for part in out):
                raise VerifyError(f"{op.name}: the parts of {result.type} are {out[0].type} and {out[1].type}")
            self.parts[id(result)] = out
            self.name(out, result)
        else:
            self.renaming[result] = self.standing(out)

    def standing(self, x: Operand) -> Operand:
        """The operand as an IR value: an array becomes a constant."""
        builder = current_builder()
        assert builder is not None
        return x if isinstance(x, Value | Literal) else builder.constant(x)

    def name(self, parts: Sequence[Operand], value: Operand) -> None:
        hint = value.name if isinstance(value, Value) else None
        for part, suffix in zip(parts, ("re", "im"), strict=True):
            if hint and isinstance(part, Value) and part.name is None:
                part.name = f"{hint}.{suffix}"


# ---- rules


def each_part(op: Op, *args: Pair | Operand) -> Pair:
    """Apply the op to the real parts and to the imaginary parts; real operands are shared."""
    return Pair(*(apply(op, *(a[k] if isinstance(a, Pair) else a for a in args)) for k in (0, 1)))


def reshaped(op: Reshape, z: Pair) -> Pair:
    """If nothing changes, the parts stay together."""
    return z if op.infer(z.re.type) == z.re.type else each_part(op, z)


def on_numbers(function: Rule) -> Rule:
    """A rule for an op without attributes that matter."""
    return lambda op, *args: function(*args)


def bilinear(op: Op, *args: Pair) -> Pair:
    """Four products of real operands, two if one operand is known to be real."""
    a, b = args
    if is_zero(b.im):
        return Pair(apply(op, a.re, b.re), apply(op, a.im, b.re))
    if is_zero(a.im):
        return Pair(apply(op, a.re, b.re), apply(op, a.re, b.im))
    return Pair(apply(op, a.re, b.re) - apply(op, a.im, b.im), apply(op, a.re, b.im) + apply(op, a.im, b.re))


def is_zero(x: Operand) -> bool:
    return isinstance(x, Literal) and bool(x.value == 0)


def change_type(op: Cast, x: Pair | Operand) -> Pair | Operand:
    if not isinstance(x, Pair):
        re = cast(x, real_dtype(op.dtype))
        return Pair(re, re.literal(0.0, re.type))
    if op.dtype.kind == "c":
        return Pair(*(cast(part, real_dtype(op.dtype)) for part in x))
    return pairs.is_nonzero(x) if op.dtype == BOOL else cast(x.re, op.dtype)


def constant(op: Constant) -> Pair:
    data = op.evaluate()
    return Pair(*(ops.perform(Constant.of(np.ascontiguousarray(part))) for part in (data.real, data.imag)))


def strong_mul(op: StrongMul, d: Pair, p: Pair) -> Pair:
    return pairs.select(pairs.is_nonzero(d), pairs.mul(d, p), d)


def integer_power(op: IntegerPow, z: Pair) -> Pair:
    one = Pair(z.one, z.zero)
    if op.n == 0:
        return one
    out = multiplied(z, abs(op.n), pairs.mul)
    return out if op.n > 0 else pairs.div(one, out)


def pad(op: Pad, z: Pair) -> Pair:
    return Pair(apply(op, z.re), apply(replace(op, value=0.0), z.im))


def prod(op: Prod, z: Pair) -> Pair:
    """Multiply halves, until one element is left."""
    shape = z.re.type.shape
    kept = tuple(a for a in range(len(shape)) if a not in op.axes)
    flat = (*(shape[a] for a in kept), math.prod(shape[a] for a in op.axes))
    out = Pair(*(ops.reshape(ops.transpose(part, (*kept, *op.axes)), flat) for part in z))
    while (n := out.re.type.shape[-1]) > 1:
        half = n // 2
        low, high, rest = (tail(out, *cut) for cut in ((0, half), (half, 2 * half), (2 * half, n)))
        out = pairs.mul(low, high)
        if n % 2:
            out = Pair(*(ops.concatenate(both, -1) for both in zip(out, rest, strict=True)))
    if not out.re.type.shape[-1]:
        one = out.re.literal(1.0, out.re.type.with_shape(flat[:-1]))
        return Pair(one, one.literal(0.0, one.type))
    return Pair(*(ops.reshape(part, flat[:-1]) for part in out))


def tail(z: Pair, start: int, stop: int) -> Pair:
    """A range of the last axis."""
    whole = [slice(None)] * (len(z.re.type.shape) - 1)
    return Pair(*(ops.slice_(part, [*whole, slice(start, stop)]) for part in z))


def cumprod(op: Cumprod, z: Pair) -> Pair:
    """The running products of spans of 1, 2, 4, ... elements."""
    out, _ = spans(op, z, None)
    return out


def recurrence(op: Recurrence, a: Pair, b: Pair) -> Pair:
    """h = a h + b composed with itself: spans of 1, 2, 4, ... steps."""
    _, out = spans(op, a, b)
    assert out is not None
    return out


def spans(op: Cumprod | Recurrence, a: Pair, b: Pair | None) -> tuple[Pair, Pair | None]:
    rank = len(a.re.type.shape)
    order = (*(axis for axis in range(rank) if axis != op.axis), op.axis)

    def turned(z: Pair, axes: Sequence[int]) -> Pair:
        return Pair(*(ops.transpose(part, axes) for part in z))

    def ordered(z: Pair) -> Pair:
        return Pair(*(ops.flip(part, rank - 1) for part in z)) if op.reverse else z

    a, b = ordered(turned(a, order)), None if b is None else ordered(turned(b, order))
    n, step = a.re.type.shape[-1], 1
    while step < n:
        before = tail(a, 0, n - step)
        if b is not None:
            b = after(step, b, pairs.add(pairs.mul(tail(a, step, n), tail(b, 0, n - step)), tail(b, step, n)))
        a = after(step, a, pairs.mul(before, tail(a, step, n)))
        step *= 2
    return turned(ordered(a), inverse(order)), None if b is None else turned(ordered(b), inverse(order))


def after(step: int, old: Pair, new: Pair) -> Pair:
    """The first `step` elements of the last axis of `old`, then `new`."""
    return Pair(*(ops.concatenate(both, -1) for both in zip(tail(old, 0, step), new, strict=True)))


def stack_zeros(op: StackZeros, stack: Pair | Operand) -> Pair:
    element = None if op.element is None else part_type(op.element)
    return Pair(*(apply(StackZeros(element), stack[k] if isinstance(stack, Pair) else stack) for k in (0, 1)))


def print_numbers(op: Print, *args: Pair | Operand) -> None:
    marks = tuple(isinstance(a, Pair) for a in args)
    ops.perform(replace(op, complex=marks), *(joined(a) if isinstance(a, Pair) else a for a in args))


def transform(op: Fft, z: Pair) -> Pair:
    return parted(transformed(op, joined(z) if isinstance(z, Parted) else in_planes(z)))


def in_planes(z: Pair) -> Operand:
    """An array whose last axis holds the parts, one after the other in memory: what computes them can write them there, and transforms
    read them as they are.
    """
    shape = z.re.type.shape
    planes = ops.reshape(ops.concatenate(z, 0), (2, *shape))
    return ops.transpose(planes, (*range(1, len(shape) + 1), 0))


RULES: dict[type[Op], Rule] = {
    **dict.fromkeys((Add, Sub, Neg, Sum, Where, Copy, Concatenate, SetSlice, Gather, ScatterAdd, ScatterSet, Cumsum), each_part),
    **dict.fromkeys((StackRead, StackAdd, StackAccumulate), each_part),
    **dict.fromkeys((Matmul, Convolve, ConvolveInput, ConvolveFilter), bilinear),
    **{op: on_numbers(function) for op, function in pairs.FUNCTIONS.items()},
    Mul: on_numbers(pairs.mul),
    Div: on_numbers(pairs.div),
    Power: on_numbers(pairs.cpow),
    Equal: on_numbers(pairs.equal),
    NotEqual: on_numbers(pairs.not_equal),
    Conj: on_numbers(pairs.conj),
    Real: on_numbers(lambda z: z.re),
    Imag: on_numbers(lambda z: z.im),
    Complex: on_numbers(Pair),
    Exp2: on_numbers(lambda z: pairs.cexp(pairs.times(z, math.log(2.0)))),
    Log2: on_numbers(lambda z: pairs.times(pairs.clog(z), 1.0 / math.log(2.0))),
    Log10: on_numbers(lambda z: pairs.times(pairs.clog(z), 1.0 / math.log(10.0))),
    Cast: change_type,
    Constant: constant,
    StrongMul: strong_mul,
    IntegerPow: integer_power,
    Pad: pad,
    Prod: prod,
    Cumprod: cumprod,
    Recurrence: recurrence,
    StackZeros: stack_zeros,
    StackLength: lambda op, stack: apply(op, stack.re),
    Print: print_numbers,
    Fft: transform,
    Reshape: reshaped,
}
