"""`address`: a compiled function as a C function pointer of this process."""

from __future__ import annotations

from typing import Any

from adjit.codegen.export import targets
from adjit.codegen.export.interface import Interface
from adjit.codegen.export.pointer import pointer
from adjit.ir.errors import UnsupportedError
from adjit.tracer import trace

from .export import outside
from .internal import compiling


def address(traced: trace.TracedProgram, signature: str | None) -> Any:
    """Return the function as a ctypes object; variables keep the values that they have now."""
    target = targets.named(targets.HOST, 1)
    made = outside(traced, target, "function")
    assigned = [f.name for f in made.interface.state if f.is_updated]
    if assigned:
        raise UnsupportedError(
            f"address: a C function pointer has no state, but this function assigns {', '.join(assigned)}; export() gives it a state"
        ).at(traced.func.location)
    constants = [*(f.initial for f in made.interface.state), *made.constants]
    plain = Interface("function", made.interface.arguments, (), made.interface.results, made.interface.errors, made.interface.memory)
    with compiling(traced.func):
        return pointer(made.program, plain, constants, target, signature)
