"""From an optimised Func to LLVM texts that need nothing but libc, and to object code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from adjit.ir.effects import effects_of
from adjit.ir.errors import NotGeneral, UnsupportedError
from adjit.ir.func import Block, Func
from adjit.ir.ops.base import Array
from adjit.ir.target import Target

from ..llvm import toolchain, whole
from ..main.module import Module
from ..threads import library
from . import wrapper
from .interface import Interface, message


class Program(NamedTuple):
    """The texts of a program without its public functions, and what these need to know."""

    texts: list[str]
    level: int  # of LLVM's back end
    memory: int  # bytes of its arena
    errors: tuple[bytes, ...]
    has_release: bool  # whether the arena refers to more memory


def refuse_python(block: Block) -> None:
    """Raise an error that names the user's line if a statement needs Python or MPI."""
    for stmt in block.stmts:
        if stmt.op.calls_python:
            raise UnsupportedError("export: print needs Python; remove it, or return what it prints").at(stmt.location)
        if stmt.results and effects_of(stmt.op).ordered:
            raise UnsupportedError(f"export: {stmt.op.name} needs an MPI program around it; remove it").at(stmt.location)
        for inner in stmt.blocks:
            refuse_python(inner)


def program(func: Func, target: Target) -> Program:
    """The texts for an optimised Func, with those of the shared routines that it calls."""
    module = Module(func, target)
    module.build()
    texts = [*module.parts.texts, *library.texts(module.imports, target)]
    level = max(1, min(module.level, *map(toolchain.level_for, texts)))
    memory = module.memory_bytes
    if module.symbols or not isinstance(memory, int):
        raise NotGeneral("export: a program for all sizes")
    return Program(texts, level, memory, tuple(map(message, module.failures)), bool(module.handles))


def object_code(
    made: Program, interface: Interface, constants: Sequence[Array], target: Target, more: Sequence[str] = (), kept: Sequence[str] = ()
) -> bytes:
    """An object file with the public functions. `more`: texts of routines that the target lacks; `kept`: symbols that LLVM refers to."""
    texts = [*made.texts, wrapper.text(interface, constants, made.has_release), *more]
    return whole.compiled(texts, target, made.level, [*wrapper.public(interface), *kept])
