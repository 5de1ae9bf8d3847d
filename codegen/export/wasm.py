"""WebAssembly without a linker: LLVM's object file becomes a module that can be run.

In the object file, code refers to functions, table entries and addresses by numbers that a linker would move. With only one object there
is nothing to move: these numbers are right if the data is at address 0. It remains to define what the object imports (memory, stack
pointer, table of functions) and to export the public symbols. The data is followed by the stack, and that by the static buffers:
arguments, state, results and arena, whose sizes are known. Memory for the stacks of loops is added at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from adjit.ir.ops.base import Array
from adjit.ir.target import Target
from adjit.ir.types import TensorType

from . import wrapper
from .interface import ALIGNMENT, Interface
from .program import Program, object_code
from .wasm_object import ObjectFile
from .wasm_routines import ALLOCATOR, PRODUCT, WIDE

PAGE = 65536
FRAMES = 4 * PAGE  # of the stack, for what LLVM itself puts there


class StaticArray(NamedTuple):
    """An array in the static buffers of a module."""

    name: str
    type: TensorType
    address: int


class WasmModule(NamedTuple):
    """A WebAssembly module, and the addresses in its memory."""

    code: bytes
    arguments: list[StaticArray]
    state: list[StaticArray]
    results: list[StaticArray]
    state_address: int
    arena: int


def module(made: Program, interface: Interface, constants: Sequence[Array], target: Target) -> WasmModule:
    uses_wide = any("i128" in text or "mul.with.overflow.i64" in text for text in made.texts)
    more = [*([ALLOCATOR] if any("@realloc(" in text for text in made.texts) else []), *([PRODUCT] if uses_wide else [])]
    parsed = ObjectFile(object_code(made, interface, constants, target, more, [WIDE] if uses_wide else []))
    stack = _aligned(parsed.data_end + FRAMES + sum(map(_reserved, made.texts)))
    at = stack

    def buffer(nbytes: int) -> int:
        nonlocal at
        address, at = at, _aligned(at + nbytes)
        return address

    arguments = [StaticArray(s.name, s.type, buffer(s.type.nbytes)) for s in interface.arguments]
    state_address = buffer(interface.state_bytes)
    state = [StaticArray(f.name, f.type, state_address + f.offset) for f in interface.fields]
    results = [StaticArray(s.name, s.type, buffer(s.type.nbytes)) for s in interface.results]
    arena = buffer(interface.arena_bytes)
    return WasmModule(parsed.finished(wrapper.public(interface), stack, -(-at // PAGE)), arguments, state, results, state_address, arena)


def _reserved(text: str) -> int:
    """The total size of the stack slots of all functions, in bytes: no function is recursive, so a call never needs more."""
    scalars = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "float": 4, "ptr": 4}
    found = re.findall(r"= alloca (?:\[(\d+) x )?<?(?:(\d+) x )?(\w+)", text)
    return sum(int(count or 1) * int(lanes or 1) * scalars.get(kind, 8) + ALIGNMENT for count, lanes, kind in found)


def _aligned(address: int) -> int:
    return -(-address // ALIGNMENT) * ALIGNMENT
