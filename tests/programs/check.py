"""The checks of a program: its results and derivatives are the same in NumPy, eagerly, interpreted and compiled.

`check(program)` raises `Mismatch`, whose `kind` says where the program went wrong: the same kind is what `shrink` looks for again.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from typing import Any
from unittest import mock

import numpy as np

import adjit as aj
from adjit.codegen.compile import compile_func
from adjit.codegen.llvm import toolchain
from adjit.ir.func import Func
from adjit.ir.interpreter import run
from adjit.ir.target import Target
from adjit.ir.verifier import verify
from adjit.passes.pipeline import OPTIMIZE, Pipeline
from adjit.runtime import executable
from adjit.runtime.concrete import ConcreteFunction, observers
from adjit.runtime.conversion import converted
from adjit.runtime.executable import optimize
from adjit.runtime.signature import take_apart
from adjit.tracer.trace import trace_function
from tests.programs import objects
from tests.programs.program import OPAQUE, STATE, TRACED, Program
from tests.programs.reference import adjit_side, arrays_of, numpy_side, plain

NEEDED = {"drop_transparent", "split_complex", "legalize", "fuse", "plan_buffers"}  # without these, there is no native code
OPTIONAL = sorted({name.partition(".")[0] for name in OPTIMIZE.passes} - NEEDED)


class Mismatch(Exception):
    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(f"{kind}: {detail}")
        self.kind = kind


def check(program: Program) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RuntimeWarning)
        warnings.simplefilter("ignore", aj.SlowCompilationWarning)  # on a busy machine any program may be slow
        with nullcontext() if program.seed % 8 == 0 else quick_back_end():
            Checks(program).run()


class Checks:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.inputs = list(program.inputs.values())
        self.tolerance = 2e-3 if program.single else 1e-8
        self.numbers = np.random.default_rng(program.seed % 2**32)

    def run(self) -> None:
        program = self.program
        names = numpy_side(program.variables)
        self.want = [np.asarray(v) for v in program.functions(names)["program"](*self.inputs)]
        self.state = [names[name].data for name in program.variables]
        if TRACED not in program.flags:
            self.stage("eager", self.eager)
        self.stage("compiled", self.compiled)
        if program.floats and program.differentiated:
            self.derivatives()

    def stage(self, name: str, action: Callable[[], Any]) -> Any:
        """Run a check; any exception is a mismatch of that name."""
        try:
            return action()
        except Mismatch:
            raise
        except Exception as error:
            raise Mismatch(f"{name} raises {type(error).__name__}", f"{error}") from error

    def same(self, where: str, got: Sequence[Any], want: Sequence[Any]) -> None:
        if len(got) != len(want):
            raise Mismatch(f"{where} count", f"{len(got)} results, not {len(want)}")
        for k, (a, b) in enumerate(zip(map(plain, got), map(plain, want), strict=True)):
            if a.dtype != b.dtype:
                raise Mismatch(f"{where} dtype", f"result {k} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}")
            if a.shape != b.shape:
                raise Mismatch(f"{where} shape", f"result {k} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}")
            allowed = self.tolerance * max(1.0, float(np.abs(b).max(initial=0.0))) if b.dtype.kind in "fc" else 0.0
            wide = complex if b.dtype.kind == "c" else float
            if not (np.abs(a.astype(wide) - b.astype(wide)) <= allowed).all():
                raise Mismatch(f"{where} value", f"result {k} is\n{a}\nnot\n{b}")

    # ---- values

    def ours(self) -> tuple[dict[str, Callable[..., Any]], list[aj.Variable]]:
        names = adjit_side(self.program.variables)
        return self.program.functions(names), [names[name] for name in self.program.variables]

    def tensors(self) -> list[Any]:
        return [aj.tensor(v) if isinstance(v, np.ndarray) else v for v in self.inputs]

    def eager(self) -> None:
        functions, variables = self.ours()
        out = functions["program"](*self.tensors())
        strange = [type(v).__name__ for v in out if not isinstance(v, aj.Tensor | np.ndarray | np.generic | bool | int | float | complex)]
        if strange:
            raise Mismatch("eager class", f"results of {strange}")
        self.same("eager", out, self.want)
        self.same("eager state", variables, self.state)

    def compiled(self) -> None:
        functions, variables = self.ours()
        call = CALLS[self.program.seed // 4 % len(CALLS)](functions["program"])
        out = call(self.program.inputs)
        self.same("compiled", out, self.want)
        self.same("compiled state", variables, self.state)
        for variable, value in zip(variables, self.program.variables.values(), strict=True):
            variable.assign(value)
        out = call({name: scattered(value) for name, value in self.program.inputs.items()})
        self.same("compiled again", out, self.want)
        self.same("compiled again state", variables, self.state)

    # ---- derivatives

    def derivatives(self) -> None:
        program = self.program
        at = program.differentiated
        value = program.functions(numpy_side(program.variables))["loss"](*self.inputs)
        gradients = self.stage("gradient", lambda: self.compiled_gradient(at, value))
        if TRACED not in program.flags:
            self.stage("eager gradient", lambda: self.eager_gradient(at, gradients))
        along = [np.asarray(self.numbers.normal(size=np.shape(self.inputs[i]))).astype(getattr(self.inputs[i], "dtype", float)) for i in at]
        dot = sum(float(np.sum(plain(g).astype(float) * v)) for g, v in zip(gradients, along, strict=True))
        size = sum(float(np.sum(np.abs(plain(g).astype(float) * v))) for g, v in zip(gradients, along, strict=True))
        self.stage("jvp", lambda: self.tangent(at, along, dot, size))
        if not program.flags & {STATE, OPAQUE} and not program.single:
            self.differences(at, along, dot, size)

    def compiled_gradient(self, at: list[int], value: Any) -> Any:
        functions, variables = self.ours()
        with specialised() as made:
            out, gradients = aj.function(aj.value_and_grad(functions["loss"], tuple(at)))(*self.inputs)
        self.same("value with gradient", [out], [np.asarray(value)])
        self.same("state with gradient", variables, self.state)
        self.everywhere(*made[-1], [out, *gradients])
        return gradients

    def eager_gradient(self, at: list[int], gradients: Any) -> None:
        functions, _ = self.ours()
        _, eager = aj.value_and_grad(functions["loss"], tuple(at))(*self.tensors())
        self.same("gradient against eager", gradients, arrays_of(eager))

    def everywhere(self, made: ConcreteFunction, stages: Stages, want: Sequence[Any]) -> None:
        """Interpreted as traced and as optimised; and compiled without one of the passes, each in turn, if that makes a difference.

        If it makes none, every fourth program goes without a pass that has something to do in it.
        """
        func, names = made.program.func, list(self.program.variables)
        cells: list[Any] = list(made.program.cells)
        given = [self.program.variables[cell.name] for cell in cells]
        arrays = [*take_apart(tuple(self.inputs), {}).arrays, *map(np.array, given), *made.program.captures]
        places = [next(k for k, p in enumerate(func.params) if p is param) for param, _ in func.updates]
        want = [*want, *(self.state[names.index(param.name)] for param, _ in func.updates)]
        verify(func)
        self.same("interpreted", run(func, *arrays), want)
        off, turn = OPTIONAL[self.program.seed % len(OPTIONAL)], self.program.seed // len(OPTIONAL)
        optimized = self.stage(f"without {off}", lambda: stages.without(off))
        makes_none = optimized is stages.last or str(optimized) == str(stages.last)
        if makes_none and turn % 4 == 0 and (useful := stages.useful(turn // 4)) is not None:
            off, makes_none = useful, False
            optimized = self.stage(f"without {off}", lambda: stages.without(off))
        self.same(f"interpreted without {off}", run(optimized, *map(in_parts, arrays)), [in_parts(plain(w)) for w in want])
        if makes_none:
            return
        with quick_back_end():
            native = self.stage(f"compiled without {off}", lambda: compile_func(optimized, stages.target, traced=func)(arrays))
        self.same(f"compiled without {off}", [*native, *(arrays[k] for k in places)], want)

    def tangent(self, at: list[int], along: Sequence[Any], dot: float, size: float) -> None:
        functions, _ = self.ours()
        loss = functions["loss"]

        def moved(*given: Any) -> Any:
            every, tangents = list(given[: len(self.inputs)]), given[len(self.inputs) :]

            def of_floats(*floats: Any) -> Any:
                for i, x in zip(at, floats, strict=True):
                    every[i] = x
                return loss(*every)

            return aj.jvp(of_floats, [every[i] for i in at], tangents)[1]

        func, arrays = traced(moved, [*self.inputs, *along])
        (tangent, *_) = run(func, *arrays)
        with quick_back_end():
            compiled = compile_func(OPTIMIZE.run(func))([a.copy() for a in arrays])[0] if self.program.seed % 4 == 0 else tangent
        for where, found in (("jvp interpreted", tangent), ("jvp compiled", compiled)):
            if not abs(float(found) - dot) <= self.tolerance * max(1.0, size):
                raise Mismatch(f"{where} against gradient", f"{float(found)} is not {dot}")

    def differences(self, at: list[int], along: Sequence[Any], dot: float, size: float) -> None:
        """Central differences, where two step sizes agree on them."""
        slopes = []
        for step in (1e-5, 4e-6):
            ends = []
            for sign in (1, -1):
                moved = list(self.inputs)
                for i, v in zip(at, along, strict=True):
                    moved[i] = self.inputs[i] + sign * step * v
                    moved[i] = moved[i] if isinstance(self.inputs[i], np.ndarray) else float(moved[i])
                loss = self.program.functions(numpy_side(self.program.variables))["loss"]
                ends.append(float(loss(*moved)))
            slopes.append((ends[0] - ends[1]) / (2 * step))
        scale = max(1.0, size)
        if abs(slopes[0] - slopes[1]) <= 1e-5 * scale and abs(slopes[1] - dot) > 2e-4 * scale:
            raise Mismatch("differences", f"{slopes} are not {dot}")


# ---- ways to call a compiled function: each takes the program, and returns a function of its inputs by name


def by_position(program: Callable[..., Any]) -> Callable[[Mapping[str, Any]], Any]:
    function = aj.function(program)
    return lambda inputs: function(*inputs.values())


def by_keyword(program: Callable[..., Any]) -> Callable[[Mapping[str, Any]], Any]:
    function = aj.function(program)
    return lambda inputs: function(**dict(reversed(inputs.items())))


def in_containers(program: Callable[..., Any]) -> Callable[[Mapping[str, Any]], Any]:
    """Inputs and results in nested containers, with arguments that are no arrays between them."""

    @aj.function
    def function(kind: str, box: Any, option: Any = None, *, flag: bool = True) -> Any:
        if kind != "box" or option is not None or not flag:
            return None
        return {"out": list(program(**box["given"].first)), "more": (kind, None, box["n"])}

    def called(inputs: Mapping[str, Any]) -> Any:
        out = function("box", {"given": objects.Pair(dict(inputs), []), "n": 3}, flag=True)
        assert out["more"] == ("box", None, 3)
        return out["out"]

    return called


def of_a_method(program: Callable[..., Any]) -> Callable[[Mapping[str, Any]], Any]:
    """A method, with starred arguments."""
    model = Model(program)
    return lambda inputs: model.call(*inputs.values(), scale=None)


class Model:
    def __init__(self, program: Callable[..., Any]) -> None:
        self.program = program

    @aj.function
    def call(self, *xs: Any, **more: Any) -> Any:
        return self.program(*xs) if more["scale"] is None else None


CALLS = [by_position, by_keyword, in_containers, of_a_method]


def scattered(value: Any) -> Any:
    """The same array with other strides."""
    if not isinstance(value, np.ndarray) or not value.ndim:
        return value
    out = np.zeros((*value.shape[:-1], 2 * value.shape[-1]), value.dtype)[..., ::-2]
    out[...] = value
    return out


class Stages:
    """A function before its optimisation and after each pass. To leave a pass out, only the passes after it are run."""

    def __init__(self, func: Func, target: Target) -> None:
        self.target = target
        self.funcs = [func]
        self.last = optimize(func, target, lambda name, stage: self.funcs.append(stage))

    def changes(self, pass_name: str) -> bool:
        """Whether a pass has something to do."""
        pairs = zip(OPTIMIZE.passes, pairwise(self.funcs), strict=True)
        return any(a is not b and str(a) != str(b) for name, (a, b) in pairs if name.partition(".")[0] == pass_name)

    def useful(self, turn: int) -> str | None:
        """An optional pass that has something to do: another one in every turn."""
        first = turn % len(OPTIONAL)
        return next((name for name in [*OPTIONAL[first:], *OPTIONAL[:first]] if self.changes(name)), None)

    def without(self, off: str) -> Func:
        """What comes out if a pass is left out: the same function if it has nothing to do."""
        if not self.changes(off):
            return self.last
        first = next(k for k, name in enumerate(OPTIMIZE.passes) if name.partition(".")[0] == off)
        rest = [each for name, each in list(OPTIMIZE.passes.items())[first:] if name.partition(".")[0] != off]
        return Pipeline(*rest).run(self.funcs[first], target=self.target)


@contextmanager
def specialised() -> Iterator[list[tuple[ConcreteFunction, Stages]]]:
    """The functions that calls compile inside the block, the outermost last, with the stages of their optimisation."""
    made: list[tuple[ConcreteFunction, Stages]] = []
    stages: dict[int, Stages] = {}

    def recorded(func: Func, target: Target, dump: Any = None) -> Func:
        stages[id(func)] = Stages(func, target)
        return stages[id(func)].last

    observe = lambda concrete, signature: made.append((concrete, stages[id(concrete.program.func)]))  # noqa: E731 - removed by identity
    observers.append(observe)
    try:
        with mock.patch.object(executable, "optimize", recorded):
            yield made
    finally:
        observers.remove(observe)


@contextmanager
def quick_back_end() -> Iterator[None]:
    """LLVM at its lowest level, which takes a third of the time: the LLVM IR is the same."""
    with mock.patch.object(toolchain, "LEVEL", 0):
        yield


def in_parts(array: Any) -> Any:
    """An array as optimised functions take it: complex numbers as pairs of real ones."""
    if array.dtype.kind != "c":
        return array
    parts = np.finfo(array.dtype).dtype
    return np.ascontiguousarray(array).view(parts).reshape(*array.shape, 2)


def traced(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Func, list[Any]]:
    """The traced program of a function, and its array arguments."""
    signature = take_apart(tuple(inputs), {})
    out = trace_function(converted(function), signature.tree, signature.traced_leaves(), "program")
    cells: list[Any] = list(out.cells)
    return out.func, [*signature.arrays, *(np.array(cell.data) for cell in cells), *out.captures]
