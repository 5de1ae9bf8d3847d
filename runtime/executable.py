"""From a traced Func to executable code: optimise, compile, and keep what inspection needs.

Owns the order of the stages and their timing, the dumping of IR, and the op by which a tape records (and differentiates) a compiled call.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from adjit.ir import ops
from adjit.ir.builder import Builder
from adjit.ir.environment import is_set
from adjit.ir.func import Block, Func, Value
from adjit.ir.locks import lazy, new_lock
from adjit.ir.operand import Operand
from adjit.ir.ops.base import Array, Op, apply, with_attributes
from adjit.ir.types import TensorType
from adjit.ir.world import world
from adjit.passes.rewrite import silenced

from .config import config
from .internal import backpropagate, compiling, guarded

if TYPE_CHECKING:
    from adjit.ir.target import Target  # compiling imports it

Mask: TypeAlias = tuple[bool, ...]


class NativeCode(Protocol):
    """The result of code generation: see `adjit.codegen.compile`."""

    arena_bytes: int
    target: Target
    exchanges: str

    @property
    def llvm(self) -> str: ...
    @property
    def asm(self) -> str: ...
    def __call__(self, arrays: Sequence[Array]) -> list[Array]: ...


def optimize(func: Func, target: Target, observe: Callable[[str, Func], None] | None = None) -> Func:
    """Return the Func that native code for a target is generated from; `observe` sees it after each pass. The passes are imported here."""
    from adjit.passes.pipeline import OPTIMIZE  # noqa: PLC0415 - a sixth of the cost of `import adjit`, needed by the first compilation

    with compiling(func):
        return OPTIMIZE.run(func, observe, target)


def expect_compilation() -> None:
    """Called before a function is traced: LLVM is loaded meanwhile."""
    from adjit.codegen.llvm.binding import begin_loading  # noqa: PLC0415 - `import adjit` does without

    begin_loading()


class Executable:
    """An optimised and compiled Func. `func` is kept as traced: derivatives are taken from it."""

    def __init__(
        self, func: Func, seconds: dict[str, float] | None = None, threads: int | None = None, exchange: str | None = None
    ) -> None:
        """`exchange`: how the collectives of several ranks are compiled (`Target`); None if there are none."""
        self.func = func
        self.threads = threads
        self.exchange = exchange
        self.seconds = {**(seconds or {}), "optimize": 0.0}
        started = time.perf_counter()
        self.native = self._compiled()
        self.seconds["compile"] = time.perf_counter() - started - self.seconds["optimize"]
        self._pullbacks: dict[tuple[Mask, Mask], tuple[Executable | None, Mask]] = {}
        self._pushforward: Executable | None = None
        self._lock = new_lock()

    def compile_with(self, exchange: str) -> None:
        """Compile again, with another method to exchange arrays between ranks."""
        self.exchange = exchange
        for name in ("target", "optimized"):
            self.__dict__.pop(name, None)
        self.native = self._compiled()

    def _compiled(self) -> NativeCode:
        """Load from the disk cache, or compile; dumping and verifying always compile, so that the passes run. LLVM is imported here."""
        from adjit.codegen import program  # noqa: PLC0415 - keeps llvmlite out of `import adjit`

        target = self.target
        if config.dump or is_set("ADJIT_VERIFY"):
            func = self.optimized
            with compiling(self.func):
                return program.compiled(func, target, traced=self.func)
        with compiling(self.func):
            return program.native_code(self.func, lambda: self.optimized, target)

    @lazy
    def target(self) -> Target:
        """The machine that the code is compiled for."""
        from adjit.codegen.llvm.target import current  # noqa: PLC0415 - as above

        target = current().with_threads(self.threads or config.threads).with_debug_lines(config.debug_lines)
        if self.exchange is None:
            return target
        from adjit.ir.target import SHARED  # noqa: PLC0415 - few programs have several ranks

        return target.with_exchange(self.exchange, world().size if self.exchange == SHARED else 1)

    @lazy
    def optimized(self) -> Func:
        """The Func after all passes; they are run on demand if the native code came from the disk cache."""
        started = time.perf_counter()
        func = optimize(self.func, self.target, Dump(self.func) if config.dump else None)
        self.seconds["optimize"] = time.perf_counter() - started
        return func

    def pullback(self, given: Mask, needed: Mask) -> tuple[Executable | None, Mask]:
        """Return the compiled `pullback_func` and the mask of parameters that it returns cotangents of; None if there are none."""
        with self._lock:
            if (given, needed) not in self._pullbacks:
                func, connected = pullback_func(self.func, given, needed)
                self._pullbacks[given, needed] = (Executable(func, threads=self.threads) if any(connected) else None, connected)
            return self._pullbacks[given, needed]

    def pushforward(self) -> Executable:
        from adjit.passes.autodiff.forward import jvp_func  # noqa: PLC0415 - as in `optimize`
        from adjit.passes.simplify.dce import eliminate_repeated_checks  # noqa: PLC0415 - as in `optimize`

        with self._lock:
            if self._pushforward is None:
                func = eliminate_repeated_checks(guarded(jvp_func)(repeatable(self.func)))
                self._pushforward = Executable(func, threads=self.threads)
            return self._pushforward


class Dump:
    """Writes the IR after the passes named by `config.dump`: one file each, numbered in pipeline order."""

    _functions = 0

    def __init__(self, func: Func) -> None:
        from adjit.passes.pipeline import OPTIMIZE  # noqa: PLC0415 - as in `optimize`

        known = ["all", "traced", *OPTIMIZE.passes]
        if config.dump not in known:
            raise ValueError(f"there is no pass {config.dump!r} to dump after (ADJIT_DUMP, config.dump); choose one of {', '.join(known)}")
        Dump._functions += 1
        name = re.sub(r"[^\w.-]+", "_", func.name)
        self.folder = os.path.join(config.dump_directory, f"{Dump._functions:03d}.{name}")
        self.count = 0
        self("traced", func)

    def __call__(self, name: str, func: Func) -> None:
        if config.dump == "all" or config.dump in (name, name.partition(".")[0]):
            os.makedirs(self.folder, exist_ok=True)
            with open(os.path.join(self.folder, f"{self.count:02d}.{name}.ir"), "w", encoding="utf-8") as file:
                file.write(str(func))
        self.count += 1


@with_attributes
class CompiledCall(Op, abstract=True):
    """A call of compiled code as a single op, as eager tapes see it. Its derivatives are compiled functions, and therefore calls again."""

    takes_stored = True
    executable: Executable

    name = "call"  # has no textual form: it never appears in the IR

    def infer(self, *types: TensorType) -> tuple[TensorType, ...]:
        return tuple(r.type for r in self.executable.func.results)

    def evaluate(self, *arrays: Array) -> tuple[Array, ...]:
        return tuple(self.executable.native([prepared(a) for a in arrays]))

    def pullback(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], cotangents: tuple[Operand | None, ...], needed: Sequence[bool]
    ) -> list[Operand | None]:
        twin, connected = self.executable.pullback(tuple(c is not None for c in cotangents), tuple(needed))
        if twin is None:
            return [None] * len(args)
        found = iter(call(twin, *args, *(c for c in cotangents if c is not None)))
        return [next(found) if reaches else None for reaches in connected]

    def pushforward(
        self, results: tuple[Operand, ...], args: tuple[Operand, ...], tangents: tuple[Operand | None, ...]
    ) -> list[Operand | None]:
        twin = self.executable.pushforward()
        dots = [a.literal(0.0, a.type) if t is None else t for a, t in zip(args, tangents, strict=True) if a.type.is_inexact]
        found = iter(call(twin, *args, *dots)[len(results) :])
        return [next(found) if r.type.is_inexact else None for r in results]


def call(executable: Executable, *args: Operand) -> tuple[Operand, ...]:
    """Return the results of compiled code; during tracing, its statements are inlined into the trace."""
    if any(isinstance(a, Value) for a in args):
        from adjit.passes.batch import inline  # noqa: PLC0415 - as in `optimize`

        return tuple(inline(executable.func.block, args))
    out: Any = apply(CompiledCall(executable), *args)
    return out if isinstance(out, tuple) else (out,)


def repeatable(func: Func) -> Func:
    """Return the part that a derivative recomputes: the forward call has already printed, checked and assigned."""
    block = func.block
    return func.replace(block=Block(block.params, silenced(block.stmts), block.results, block.saving), updates=())


def pullback_func(func: Func, given: Mask, needed: Mask) -> tuple[Func, Mask]:
    """Return `@f.pull` and the mask of parameters that it returns cotangents of.

    It takes the parameters, and the cotangents of the results in `given`. Parameters that no derivative reaches are not in the mask: for
    the tape they are unconnected, which differs from zero. A value read from a variable whose shape has changed counts as the variable:
    derivatives with respect to it are derivatives with respect to the variable (`Assigned` passes on those of other assignments).
    """
    from adjit.passes.simplify.dce import eliminate_repeated_checks  # noqa: PLC0415 - as in `optimize`

    targets = [r for r, has in zip(func.results, given, strict=True) if has]
    sources = [p for p, wanted in zip(func.params, needed, strict=True) if wanted]
    seeds = [Value(t.type, f"{t.name}.bar" if isinstance(t, Value) and t.name else None) for t in targets]
    stmts = silenced(func.stmts)
    with Builder([*func.params, *seeds]) as builder:
        builder.stmts.extend(stmts)
        rereads = [(p, new) for p, new in func.writes if any(p is s for s in sources)]
        values = [*sources, *(new for _, new in rereads)]
        found: dict[int, Operand] = {}
        for value, cotangent in zip([*sources, *(p for p, _ in rereads)], backpropagate(stmts, targets, seeds, values), strict=True):
            if cotangent is not None:
                found[id(value)] = ops.add(found[id(value)], cotangent) if id(value) in found else cotangent
        cotangents = [found.get(id(p)) for p in func.params]
        block = builder.finish([c for c in cotangents if c is not None])
    pull = func.replace(name=f"{func.name}.pull", block=block, updates=(), plan=None)
    return eliminate_repeated_checks(pull), tuple(c is not None for c in cotangents)


def prepared(array: Array) -> Array:
    """Return the array as native code reads it: row-major and aligned."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else array.copy(order="C")
