"""`export` and `address`: compiled functions for use outside of Python.

Owns the names and initial values of exported functions; `codegen.export` writes the files. Imported when a function is exported.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from adjit.codegen.export import files, targets
from adjit.codegen.export.header import header
from adjit.codegen.export.interface import Interface, InterfaceSlot, check_name, fields, identifiers, in_pairs
from adjit.codegen.export.program import Program, object_code, program, refuse_python
from adjit.codegen.export.wrapper import public
from adjit.ir.errors import ShapeError, UnsupportedError
from adjit.ir.func import Func, Value
from adjit.ir.ops.base import Array
from adjit.ir.records import NamedTuple
from adjit.ir.target import Target
from adjit.tracer import trace
from adjit.tracer.pytree import dotted, tree_map

from .config import check_threads
from .executable import optimize
from .internal import compiling
from .specs import TensorSpec, example
from .stores import Store, snapshot

KINDS = (".o", ".a", ".so", ".wasm")


class Exported(NamedTuple):
    """The result of `export`: the files written, and the sizes that a caller has to know."""

    name: str
    files: tuple[str, ...]
    arena_bytes: int
    state_bytes: int


class Outside(NamedTuple):
    """A traced function compiled for use outside of Python: its texts and its interface."""

    func: Func
    program: Program
    interface: Interface
    constants: Sequence[Array]

    @property
    def summary(self) -> str:
        """A description, for the comments at the top of files."""
        where = self.func.location
        file = f" of {os.path.basename(where.file)}" if where is not None else ""
        return f"{self.interface.name}: the function {self.func.name}{file}"


def export(traced: trace.TracedProgram, where: str | os.PathLike[str], name: str | None, target_name: str, threads: int) -> Exported:
    path = os.fspath(where)
    base, kind = os.path.splitext(path)
    target_name = target_for(path, kind, target_name)
    check_threads(threads)
    target = targets.named(target_name, threads)
    made = outside(traced, target, check_name(name) if name is not None else default_name(base, kind))
    shown = f"{target_name} ({target.cpu})" if target_name == targets.HOST else target_name
    written = _as_wasm(made, target, path) if kind == ".wasm" else _as_object(made, target, path, kind, shown)
    return Exported(made.interface.name, written, made.interface.arena_bytes, made.interface.state_bytes)


def examples(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments with an array in place of each `TensorSpec`, whose sizes must all be known."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, TensorSpec) and not leaf.is_static:
            raise ShapeError(f"export: code is compiled for one size, but {leaf!r} leaves a size open: give all sizes as numbers")
        return example(leaf)

    given: tuple[tuple[Any, ...], dict[str, Any]] = tree_map(one, (args, kwargs))
    return given


def target_for(path: str, kind: str, name: str) -> str:
    """Return the name of the target; wasm32 is for `.wasm` files, and only for them."""
    if kind not in KINDS:
        raise UnsupportedError(f"export: the path must end in one of {', '.join(KINDS)}, which selects the kind of file: {path!r}")
    if kind == ".wasm" and name == targets.HOST:
        return targets.WASM
    if (kind == ".wasm") != (name == targets.WASM) and name in targets.NAMES:
        raise UnsupportedError(
            f"export: cannot write a {kind} file for {name}: .wasm files need target='wasm32', and other files another target"
        )
    return name


def default_name(base: str, kind: str) -> str:
    """The name of the function, from that of the file."""
    stem = os.path.basename(base)
    return check_name(identifiers([stem.removeprefix("lib") if kind in (".a", ".so") else stem])[0])


def _as_wasm(made: Outside, target: Target, path: str) -> tuple[str, ...]:
    from adjit.codegen.export import javascript, wasm  # noqa: PLC0415 - few export for browsers

    base = os.path.splitext(path)[0]
    with compiling(made.func):
        module = wasm.module(made.program, made.interface, made.constants, target)
    return (
        files.write(path, module.code),
        files.write(f"{base}.mjs", javascript.script(made.interface, module, made.summary, os.path.basename(path))),
        files.write(f"{base}.d.ts", javascript.declarations(made.interface, made.summary)),
        files.write(f"{base}.d.mts", javascript.declarations(made.interface, made.summary)),  # where TypeScript looks, beside a .mjs
    )


def _as_object(made: Outside, target: Target, path: str, kind: str, shown: str) -> tuple[str, ...]:
    with compiling(made.func):
        code = object_code(made.program, made.interface, made.constants, target)
    if kind == ".so":
        files.shared(code, path, target)
    else:
        files.write(path, code if kind == ".o" else files.archive(f"{made.interface.name}.o", code, public(made.interface)))
    text = header(made.interface, made.summary, shown, target.threads)
    return path, files.write(f"{os.path.splitext(path)[0]}.h", text)


def outside(traced: trace.TracedProgram, target: Target, name: str) -> Outside:
    """Optimise and emit a traced function for a target without Python."""
    func = traced.func
    refuse_python(func.block)
    if traced.reshaped:
        names = ", ".join(cell.name or "a variable" for cell in traced.reshaped)
        raise UnsupportedError(f"export: the function changes the shape of {names}; exported state has fixed shapes").at(func.location)
    made_of = optimize(func, target)
    with compiling(func):
        made = program(made_of, target)
    taken = ["state", "arena", name, f"{name}_state"]
    inputs = identifiers((p.name or f"x{k}" for k, p in enumerate(func.params[: traced.arguments])), taken)
    outputs = identifiers(result_names(traced), [*taken, *inputs])
    stores = [cell for cell in traced.cells if isinstance(cell, Store)]
    variables = func.params[traced.arguments : traced.arguments + len(stores)]
    written = {id(param) for param, _ in func.updates}
    interface = Interface(
        name,
        tuple(InterfaceSlot(n, in_pairs(p.type)) for n, p in zip(inputs, func.params)),
        fields(
            identifiers(v.name or f"variable{k}" for k, v in enumerate(stores)),
            [in_pairs(v.type) for v in stores],
            snapshot(stores),
            [id(p) in written for p in variables],
        ),
        tuple(InterfaceSlot(n, in_pairs(r.type)) for n, r in zip(outputs, func.results, strict=True)),
        made.errors,
        made.memory,
    )
    return Outside(func, made, interface, traced.captures)


def result_names(traced: trace.TracedProgram) -> list[str]:
    """Return names for the results: the user's own, or the path to each in the structure that the function returns."""
    skipped = {position for position, _ in traced.static}
    paths = [path for k, path in enumerate(traced.out_tree.key_paths()) if k not in skipped]
    out = []
    for result, path in zip(traced.func.results, paths, strict=True):
        is_labelled = any(kind != "index" for kind, _ in path)
        is_own = isinstance(result, Value) and all(result is not p for p in traced.func.params)
        own = result.name if isinstance(result, Value) and is_own and not is_labelled else None
        if own is not None and "." not in own:  # else a derivative: its path in the structure is more informative
            out.append(own)
        else:
            place = dotted(path).lstrip(".")
            out.append(f"out_{place}" if place[:1].isdigit() else place or "out")
    return out
