"""Sequences of passes, as data.

A `Pipeline` is itself a pass. `ADJIT_VERIFY=1` verifies the function after every pass and names the pass that broke it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TypeAlias

from adjit.ir.environment import is_set
from adjit.ir.errors import VerifyError
from adjit.ir.func import Func, Stmt
from adjit.ir.ops.base import REGISTRY
from adjit.ir.target import USUAL, Target

from .autodiff.transparent import drop_transparent
from .complex import split_complex
from .fusion.components import split_components
from .fusion.fuse import fuse
from .fusion.hosts import host_products
from .fusion.joins import pad_joined_views
from .fusion.legalize import legalize
from .fusion.positions import reduce_positions
from .fusion.rows import fuse_rows
from .fusion.stencils import shift_stencils
from .fusion.turned import turn_products
from .loops.accumulate import accumulate_products
from .loops.licm import hoist_invariants
from .loops.lift import lift_products
from .loops.unpack import unpack_small_arrays
from .memory.buffers import plan_buffers
from .overlap import overlap_reductions
from .simplify.checked import check_once
from .simplify.cse import eliminate_common_subexpressions
from .simplify.dce import eliminate_dead_code
from .simplify.fold import fold
from .simplify.scatters import scatter_updates
from .simplify.simplify import simplify
from .targeted import takes_target

Pass: TypeAlias = Callable[..., Func]  # takes a Func, and also a Target if it is marked by `for_target`
Observer: TypeAlias = Callable[[str, Func], None]


class Pipeline:
    """Passes that run in order. `passes` holds them under unique names: a second `simplify` is named `simplify.2`.

    Passes are idempotent: one that is listed twice is skipped if nothing has changed since it last ran.
    """

    def __init__(self, *passes: Pass) -> None:
        self.passes: dict[str, Pass] = {}
        for each in passes:
            name = getattr(each, "__name__", type(each).__name__)
            count = sum(known.partition(".")[0] == name for known in self.passes)
            self.passes[f"{name}.{count + 1}" if count else name] = each

    takes_target = True  # a pipeline passes the target on to its own passes

    def __call__(self, func: Func, target: Target = USUAL) -> Func:
        return self.run(func, target=target)

    def run(self, func: Func, observe: Observer | None = None, target: Target = USUAL) -> Func:
        """Run all passes for a target and return the function; `observe(name, func)` is called after each pass."""
        checked = is_set("ADJIT_VERIFY")
        sound: Func | None = None  # the last function that was verified
        known: dict[int, Stmt] = {}  # its statements, and those of the functions before it
        done: dict[Pass, Func] = {}  # each pass's latest output: running the pass on it again would change nothing
        for name, each in self.passes.items():
            if done.get(each) is not func:
                func = done[each] = each(func, target) if takes_target(each) else each(func)
            if checked and func is not sound:
                verified(func, name, known)
                sound = func
            if observe is not None:
                observe(name, func)
        return func


def verified(func: Func, after: str, known: dict[int, Stmt]) -> None:
    """Raise a VerifyError that names the pass if the function breaks a rule of the IR."""
    from adjit.ir.verifier import verify  # noqa: PLC0415 - loaded only where functions are checked

    try:
        verify(func, known=known)
    except VerifyError as error:
        error.add_note(f"found after the pass {after!r} on @{func.name}")
        raise


def late(name: str, module: str, registered: str = "", contained: tuple[str, ...] = ()) -> Pass:
    """A pass that is imported only if the op `registered` is (see `ir.ops.late`), or if a program contains all ops in `contained`."""

    def run(func: Func) -> Func:
        if (registered and registered not in REGISTRY) or not all(func.block.contains(REGISTRY[op]) for op in contained):
            return func
        found: Pass = getattr(import_module(module, __package__), name)
        return found(func)

    run.__name__ = name
    return run


fuse_attention = late("fuse_attention", ".fusion.attention", contained=("matmul", "exp"))
substitute_triangles = late("substitute_triangles", ".simplify.triangles", "solve_with")
select_parts = late("select_parts", ".simplify.selections", "argsort")

# `simplify` runs again after CSE, since `sub(x, x)` and similar patterns only show once common subexpressions are merged. Values hoisted
# out of a loop and out of its adjoint are often equal, which the second CSE finds.
OPTIMIZE = Pipeline(
    drop_transparent,
    split_complex,
    fold,
    simplify,
    eliminate_common_subexpressions,
    simplify,
    hoist_invariants,
    eliminate_common_subexpressions,
    substitute_triangles,
    select_parts,
    eliminate_dead_code,
    scatter_updates,
    split_components,
    unpack_small_arrays,
    fuse_attention,
    shift_stencils,
    pad_joined_views,
    lift_products,
    accumulate_products,
    turn_products,
    reduce_positions,
    legalize,
    fuse,
    fuse_rows,
    host_products,
    check_once,
    overlap_reductions,
    plan_buffers,
)

# For people to read: the program before it is divided into kernels, with complex numbers still in it.
KERNELS = "unpack_small_arrays"  # the first pass that prepares native code; those before it simplify
READABLE = Pipeline(*(each for each in list(OPTIMIZE.passes.values())[: list(OPTIMIZE.passes).index(KERNELS)] if each is not split_complex))
