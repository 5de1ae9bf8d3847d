"""A planned Func to native code: one kernel a statement, and one main function that calls them in order."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from adjit.ir.errors import AdjitError
from adjit.ir.func import Func, Stmt, Value
from adjit.ir.location import Location
from adjit.ir.ops.base import Array, View
from adjit.ir.ops.control import Fuse, Region
from adjit.ir.ops.create import Constant
from adjit.ir.plan import Place, Plan
from adjit.ir.types import F32, F64

from . import blas, llvm, products
from .kernels import Kernel, contiguous_access, copy_kernel, fused_kernel, lowered_kernel

DETAILS = 8  # i64 words that a failing kernel may leave for the message


class Failure(NamedTuple):
    """What to raise when a statement's kernel returns a code."""

    error: type[AdjitError]
    messages: tuple[str, ...]
    location: Location | None


class Module:
    """The LLVM module of one Func while it is put together."""

    def __init__(self, func: Func, target: llvm.Target) -> None:
        if func.plan is None:
            raise AdjitError(f"@{func.name} has no buffer plan: run it through the optimisation pipeline first")
        self.func = func
        self.plan: Plan = func.plan
        self.vector_bytes = target.vector_bytes
        self.functions: dict[str, str] = {}  # definition without its name -> name
        self.declares: set[str] = set()
        self.imports: set[str] = set()
        self.constants: list[str] = []
        self.main: list[str] = []
        self.failures: list[Failure] = []
        self._temporaries = 0

    def build(self) -> str:
        for index, stmt in enumerate(self.func.stmts):
            self.statement(index, stmt)
        for param, new in self.func.updates:
            assert isinstance(new, Value)
            self.write_back(param, new)
        pointers = [f"%t{k} = getelementptr ptr, ptr %buffers, i64 {k}\n%b{k} = load ptr, ptr %t{k}" for k in range(self.buffer_count)]
        body = "\n".join([*pointers, *self.main])
        definitions = [definition.replace("@{}", f"@{name}", 1) for definition, name in self.functions.items()]
        head = f"define i64 @adjit_main(ptr %buffers, ptr %arena, ptr %error) nounwind {{\nentry:\n{body}\nret i64 0\n}}\n"
        return "\n".join([*sorted(self.declares), *self.constants, *definitions, head])

    @property
    def buffer_count(self) -> int:
        return len(self.func.params) + len(self.func.results)

    def statement(self, index: int, stmt: Stmt) -> None:
        if isinstance(stmt.op, View):
            return
        if isinstance(stmt.op, Constant):
            data = "".join(f"\\{byte:02X}" for byte in stmt.op.data)
            self.constants.append(f'@c{index} = internal constant [{len(stmt.op.data)} x i8] c"{data}", align 64')
        elif isinstance(stmt.op, Fuse):
            self.call(fused_kernel(stmt, self.plan, self.vector_bytes), stmt)
        elif isinstance(stmt.op, Region):
            raise AdjitError(f"{stmt.op.name}: no native code for this region yet").at(stmt.location)
        else:
            self.call(lowered_kernel(stmt, self.plan, self.vector_bytes), stmt)

    def call(self, kernel: Kernel, stmt: Stmt) -> None:
        """Call a kernel from the main function; leave at once when it fails."""
        arguments = [self.pointer(self.plan.places[id(root)], offset) for root, offset in kernel.arguments]
        self.invoke(kernel, arguments, stmt)

    def invoke(self, kernel: Kernel, arguments: list[str], stmt: Stmt | None) -> None:
        name = self.function(kernel)
        operands = ", ".join(f"ptr {a}" for a in arguments)
        if not kernel.failures:
            self.main.append(f"call void @{name}({operands})")
            return
        assert stmt is not None
        code, failed, fine = (self.temporary() for _ in range(3))
        shift = len(self.failures) * 256
        self.failures.append(Failure(stmt.op.error, tuple(kernel.failures), stmt.location))
        self.main += [
            f"%{code} = call i64 @{name}({operands}{', ' if operands else ''}ptr %error)",
            f"%{code}.ok = icmp eq i64 %{code}, 0",
            f"br i1 %{code}.ok, label %{fine}, label %{failed}",
            f"{failed}:",
            f"%{code}.all = add i64 %{code}, {shift}",
            f"ret i64 %{code}.all",
            f"{fine}:",
        ]

    def function(self, kernel: Kernel) -> str:
        self.declares |= kernel.text.declares
        self.imports |= kernel.imports
        return self.functions.setdefault(kernel.definition("{}"), f"k{len(self.functions)}")

    def pointer(self, place: Place, offset: int) -> str:
        if place.kind == "arena":
            return self.moved("%arena", place.index + offset)
        if place.kind == "constant":
            return self.moved(f"@c{place.index}", offset)
        return self.moved(f"%b{place.index + (len(self.func.params) if place.kind == 'result' else 0)}", offset)

    def moved(self, base: str, offset: int) -> str:
        if offset == 0:
            return base
        name = self.temporary()
        self.main.append(f"%{name} = getelementptr i8, ptr {base}, i64 {offset}")
        return f"%{name}"

    def temporary(self) -> str:
        self._temporaries += 1
        return f"m{self._temporaries}"

    def write_back(self, param: Value, new: Value) -> None:
        """The new value of an updated parameter, copied to its buffer where it was not computed there."""
        here, there = self.plan.place(new), self.plan.place(param)
        if here == there:
            return
        target, source = contiguous_access("%p0", param.type), contiguous_access("%p1", param.type)
        kernel = copy_kernel(target, source, param.type.shape, self.plan, self.vector_bytes)
        kernel.pointers = {(0, 0): "%p0", (0, 1): "%p1"}
        self.invoke(kernel, [self.pointer(there, 0), self.pointer(here, 0)], None)


class Native:
    """A compiled Func. Call it with arrays in the order of the parameters; parameters in `updates` are overwritten in place."""

    def __init__(self, func: Func, target: llvm.Target | None = None) -> None:
        self.target = target or llvm.host()
        module = Module(func, self.target)
        self.llvm = module.build()
        self.failures = module.failures
        self.arena_bytes = module.plan.arena_bytes
        self.result_types = tuple(r.type for r in func.results)
        self._library = llvm.Library(llvm.assemble(self.llvm, self.target), ["adjit_main"], _addresses(module.imports))
        self._main = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(self._library.address["adjit_main"])
        self._arenas: list[Array] = []
        self._count = module.buffer_count

    @cached_property
    def asm(self) -> str:
        return llvm.assembly(self.llvm, self.target)

    def __call__(self, arrays: Sequence[Array]) -> list[Array]:
        results = [np.empty(t.shape, t.dtype) for t in self.result_types]
        table = (ctypes.c_void_p * self._count)(*[a.__array_interface__["data"][0] for a in (*arrays, *results)])
        try:
            arena = self._arenas.pop()
        except IndexError:
            arena = _aligned(self.arena_bytes)
        error = (ctypes.c_int64 * DETAILS)()
        try:
            code = self._main(table, arena.__array_interface__["data"][0], error)
        finally:
            self._arenas.append(arena)
        if code:
            self._raise(code, list(error))
        return results

    def _raise(self, code: int, details: list[int]) -> None:
        failure = self.failures[code // 256]
        message = failure.messages[code % 256 - 1].format(*details)
        raise failure.error(message).at(failure.location)


def _aligned(nbytes: int) -> Array:
    raw = np.empty(nbytes + 64, np.uint8)
    shift = -raw.__array_interface__["data"][0] % 64
    return raw[shift : shift + nbytes]


def _addresses(imports: set[str]) -> dict[str, int]:
    library = blas.find()
    known = {products.symbol(d): library.address[d] for d in (F32, F64)} if library else {}
    return {name: known[name] for name in imports}


def compile_func(func: Func, target: llvm.Target | None = None) -> Native:
    """Native code for a Func that has been through the optimisation pipeline."""
    return Native(func, target)
