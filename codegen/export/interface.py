"""The interface of an exported function as data: arguments, state, results and error messages, by names that C and JavaScript accept.

The state is one C struct: each variable is a field, in the order of first use, with the alignment of its element type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

from adjit.ir.errors import UnsupportedError
from adjit.ir.ops.base import Array
from adjit.ir.types import DType, TensorType, real_dtype

from ..cache.image import Failure

ALIGNMENT = 64  # of the arena: a cache line, and the longest vector
RECORD = 64  # bytes of the error record, at the start of the arena
DIGITS = 20  # of a 64-bit number, with its sign
SIGNED, UNSIGNED = 0x01, 0x11  # bytes of a message that are replaced by the first number of the error record, printed as int64 or uint64
C_TYPES: dict[DType, str] = {
    np.dtype(code): text
    for code, text in {
        "f4": "float", "f8": "double", "?": "bool",
        "i1": "int8_t", "i2": "int16_t", "i4": "int32_t", "i8": "int64_t",
        "u1": "uint8_t", "u2": "uint16_t", "u4": "uint32_t", "u8": "uint64_t", "f2": "uint16_t",
    }.items()
}  # fmt: skip
KEYWORDS = (
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl const constexpr const_cast continue "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline int long "
    "mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register reinterpret_cast restrict "
    "return short signed sizeof static static_assert static_cast struct switch template this thread_local throw true try typedef typeid "
    "typename union unsigned using virtual void volatile wchar_t while xor xor_eq int8_t int16_t int32_t int64_t uint8_t uint16_t "
    "uint32_t uint64_t await debugger finally function implements import in instanceof interface let null package super typeof "
    "undefined var with yield arguments eval constructor prototype arena state main errno stdin stdout stderr NULL linux unix "
)  # of C, C++ and JavaScript, and names that headers define as macros
RESERVED = frozenset(KEYWORDS.split())


NUMERIC = (
    "acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb ldexp log log10 log1p log2 logb modf "
    "scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma tgamma ceil floor nearbyint rint lrint llrint round lround llround trunc fmod "
    "remainder remquo copysign nan nextafter nexttoward fdim fmax fmin fma j0 j1 jn y0 y1 yn gamma"
)
OTHERS = (
    "abs labs llabs div ldiv lldiv rand srand random malloc calloc realloc free abort exit atexit system getenv bsearch qsort atoi atof "
    "memcpy memmove memset memcmp strlen strcpy strcat strcmp index rindex printf scanf puts gets open close read write link signal time "
    "clock raise select send recv accept bind listen connect socket fork kill pause sleep wait remove rename"
)
LIBRARY = frozenset(each + end for each in NUMERIC.split() for end in ("", "f", "l")) | frozenset(OTHERS.split())  # functions of libc, libm


def in_pairs(type: TensorType) -> TensorType:
    """The type in C: complex numbers are pairs of their real and imaginary parts."""
    return TensorType(real_dtype(type.dtype), (*type.shape, 2)) if type.dtype.kind == "c" else type


class InterfaceSlot(NamedTuple):
    """An argument or a result. Types of slots and fields are those in C (`in_pairs`)."""

    name: str
    type: TensorType


class Field(NamedTuple):
    """A variable: where it is in the struct, and what it holds initially."""

    name: str
    type: TensorType
    offset: int
    initial: Array
    is_updated: bool


@dataclass(frozen=True)
class Interface:
    """The interface of an exported function for its callers. `errors` are the messages of the codes from 1 on."""

    name: str
    arguments: tuple[InterfaceSlot, ...]
    state: tuple[Field, ...]
    results: tuple[InterfaceSlot, ...]
    errors: tuple[bytes, ...]
    memory: int  # bytes of the arena that the code itself uses

    @property
    def state_bytes(self) -> int:
        """The size of the struct."""
        end = max((f.offset + f.type.nbytes for f in self.state), default=0)
        return -(-end // self.state_alignment) * self.state_alignment

    @property
    def state_alignment(self) -> int:
        return max((f.type.dtype.itemsize for f in self.state), default=1)

    @property
    def is_stateful(self) -> bool:
        return bool(self.fields)

    @property
    def fields(self) -> list[Field]:
        """The fields of the struct; C has no arrays of length 0."""
        return [f for f in self.state if f.type.size]

    @property
    def updates_state(self) -> bool:
        return any(f.is_updated for f in self.fields)

    @property
    def head_bytes(self) -> int:
        """Bytes before the arena proper: the error record, and a message with the numbers filled in."""
        longest = max((len(m) + DIGITS * sum(is_number(c) for c in m) for m in self.errors), default=0)
        return RECORD + -(-(longest + 1) // ALIGNMENT) * ALIGNMENT

    @property
    def arena_bytes(self) -> int:
        """The memory that the caller has to provide, at any address."""
        return -(-(self.head_bytes + self.memory) // ALIGNMENT) * ALIGNMENT + ALIGNMENT

    @property
    def initial(self) -> bytes:
        """The initial contents of the struct."""
        out = bytearray(self.state_bytes)
        for f in self.state:
            out[f.offset : f.offset + f.type.nbytes] = f.initial.tobytes()
        return bytes(out)


def is_number(byte: int) -> bool:
    return byte - SIGNED in range(8) or byte - UNSIGNED in range(8)


def fields(names: Sequence[str], types: Sequence[TensorType], arrays: Sequence[Array], updated: Sequence[bool]) -> tuple[Field, ...]:
    """Lay out the struct, as C does."""
    out, end = [], 0
    for name, type, array, is_updated in zip(names, types, arrays, updated, strict=True):
        size = type.dtype.itemsize
        offset = -(-end // size) * size
        out.append(Field(name, type, offset, array, is_updated))
        end = offset + type.nbytes
    return tuple(out)


def message(failure: Failure) -> bytes:
    """The text of an error, with a byte for each number that the error record will hold."""
    marks = {f"{{{k}{kind}}}": chr(base + k) for k in range(8) for kind, base in (("", SIGNED), (":unsigned", UNSIGNED))}
    text, number = re.sub(r"[\x00-\x09\x0b-\x1f]", " ", with_integers(failure.message)), 0
    while (found := re.search(r"(?<!\{)\{(:unsigned)?\}(?!\})", text)) is not None:
        text = f"{text[: found.start()]}{{{number}{found[1] or ''}}}{text[found.end() :]}"
        number += 1
    for spelled, mark in marks.items():
        text = text.replace(spelled, mark)
    text = text.replace("{{", "{").replace("}}", "}")
    where = f"\n  {failure.location.describe()}" if failure.location is not None else ""
    return (text + where).encode()


def with_integers(text: str) -> str:
    """A message whose `Detail` placeholders suit code without Python: integers are numbered, and other numbers become dots."""
    shown = count()

    def place(found: re.Match[str]) -> str:
        k, kind = next(shown), found[1][0]
        return f"{{{k}}}" if kind == "i" else f"{{{k}:unsigned}}" if kind == "u" else "..."

    return re.sub(r"(?<!\{)\{:(\w+)![rsa]?:[^{}]*\}", place, text)


def is_identifier(name: str) -> bool:
    return re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) is not None and name not in RESERVED


def check_name(name: str) -> str:
    """Check the name that the user gave the function, and return it: it is the prefix of all symbols."""
    if not is_identifier(name) or name in LIBRARY:
        raise UnsupportedError(f"{name!r} cannot be the name of a C function; give another as name=")
    return name


def identifiers(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """These names as identifiers of C and JavaScript, all different."""
    used, out = set(taken), []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", name.replace("'", "")).strip("_") or "x"
        plain = f"x{plain}" if plain[0].isdigit() else plain
        plain = f"{plain}_" if plain in RESERVED else plain
        found, count = plain, 1
        while found in used:
            count += 1
            found = f"{plain}_{count}"
        used.add(found)
        out.append(found)
    return out
