"""The result of `function.inspect`: the program of one call at every stage, as text.

Texts are generated on demand; the passes are rerun to show the IR after each, since compiled functions do not keep it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from adjit.ir.func import Block, Func
from adjit.ir.locks import lazy
from adjit.ir.records import NamedTuple

from .executable import optimize

if TYPE_CHECKING:
    from .concrete import ConcreteFunction
    from .inspecting import InspectedCall


class PassResult(NamedTuple):
    """The function after a pass: its text and its number of ops, fused ones included."""

    name: str
    text: str
    ops: int


class Inspection:
    """The stages of one compiled function; `print` it for a summary.

    >>> @aj.function
    ... def square(x):
    ...     return x * x
    >>> print(square.inspect(3.0).traced, end="")
    func @square(%x: f64[]) -> f64[] !...:2:1 {
      %0: f64[] = mul %x, %x !3:12
      return %0
    }
    """

    def __init__(self, concrete: ConcreteFunction, function: Callable[..., Any], alone: Callable[[], InspectedCall] | None = None) -> None:
        """`alone` compiles the inspected call for its sizes alone: some stages can only be shown of such a program."""
        self._function = function
        self._alone = alone
        self._concrete = concrete
        self._executable = concrete.executable
        self._func = concrete.executable.func

    @property
    def autograph(self) -> str:
        """The converted source that was traced; if the function was traced unconverted, a comment that says why."""
        from adjit.tracer.autograph.convert import to_code  # noqa: PLC0415 - brings in `ast`

        try:
            return to_code(self._function)
        except (TypeError, ValueError) as reason:
            return f"# {reason}\n"

    @property
    def traced(self) -> str:
        """IR as traced, forward and backward together."""
        return str(self._func)

    @lazy
    def stages(self) -> list[tuple[str, Func]]:
        stages = [("traced", self._func)]
        optimize(self._func, self._executable.target, lambda name, func: stages.append((name, func)))
        return stages

    @lazy
    def simplified(self) -> Func:
        """The function after simplification but before division into kernels, the most readable form. Complex numbers are not split."""
        from adjit.passes.complex import has_complex  # noqa: PLC0415 - keeps the passes out of `import adjit`
        from adjit.passes.pipeline import KERNELS, READABLE  # noqa: PLC0415 - keeps the passes out of `import adjit`

        if has_complex(self._func):
            return READABLE.run(self._func, target=self._executable.target)
        return next(func for (_, func), (name, _) in pairwise(self.stages) if name == KERNELS)

    @lazy
    def halves(self) -> tuple[Func, Func | None]:
        from adjit.passes.autodiff.split import split  # noqa: PLC0415 - keeps the passes out of `import adjit`

        return split(self.simplified)

    @property
    def forward(self) -> str:
        """IR of the forward part, including what it saves for the backward part."""
        return str(self.halves[0])

    @property
    def backward(self) -> str:
        """IR of the backward part; empty for a function that computes no gradient."""
        return str(self.halves[1]) if self.halves[1] is not None else ""

    @property
    def outline(self) -> str:
        """Both parts, with stretches that are repeated, such as the layers of a network, printed once."""
        from adjit.ir.outline import outline  # noqa: PLC0415 - few look at it

        forward, backward = self.halves
        text = f"forward:\n{outline(forward)}"
        return f"{text}\nno backward part\n" if backward is None else f"{text}\nbackward:\n{outline(backward)}"

    @lazy
    def source(self) -> str:
        """Both parts as NumPy Python, to read and to run: see `function.source`."""
        from .source import text_of  # noqa: PLC0415 - brings in `ast` and astunparse

        if self._concrete.convention.is_general and self._alone is not None:
            looked = self._alone()
            return Inspection(looked.concrete, looked.fn).source
        return text_of(self._concrete, self.simplified, self.halves).text

    @property
    def optimized(self) -> str:
        """The IR that native code was generated from."""
        return str(self._executable.optimized)

    @lazy
    def loops(self) -> str:
        """The loops of every kernel: trip counts, vector widths, threads, accesses."""
        from adjit.codegen.program import loops_text  # noqa: PLC0415 - keeps llvmlite out of `import adjit`

        return loops_text(self._executable.optimized, self._executable.target)

    @property
    def llvm(self) -> str:
        return self._executable.native.llvm

    @property
    def asm(self) -> str:
        return self._executable.native.asm

    @property
    def arena_bytes(self) -> int:
        """Bytes allocated for everything that is not an argument, variable or result."""
        return self._executable.native.arena_bytes

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds spent on tracing, optimising and compiling."""
        return dict(self._executable.seconds)

    @lazy
    def passes(self) -> list[PassResult]:
        """The function as traced, then after each pass."""
        return [PassResult(name, str(func), count_ops(func.block)) for name, func in self.stages]

    def __str__(self) -> str:
        kernels = len(self._executable.optimized.stmts)
        times = ", ".join(f"{stage} {seconds * 1e3:.1f} ms" for stage, seconds in self.seconds.items())
        width = max(len(p.name) for p in self.passes)
        table = "\n".join(f"  {p.name:<{width}}  {p.ops:>6} ops" for p in self.passes)
        head = f"@{self._func.name}: {times}; {kernels} statements in the end, {self.arena_bytes:,} bytes of arena"
        parts = [head, table, self.outline]
        return "\n\n".join(part.rstrip() for part in parts)

    def _repr_html_(self) -> str | None:
        """In notebooks: the explorer page, see `function.explore`."""
        if self._alone is None:
            return None
        from .explore import explore, framed  # noqa: PLC0415 - profiles, which `import adjit` does without

        looked = self._alone()
        return framed(explore(looked.concrete, looked.copies(), looked.fn))

    def __repr__(self) -> str:
        return f"<inspection of @{self._func.name}: {count_ops(self._func.block)} ops traced>"


def count_ops(block: Block) -> int:
    """Count the statements at every depth; a region itself is not counted, only its contents."""
    pending, total = [block], 0
    while pending:
        for stmt in pending.pop().stmts:
            total += not stmt.blocks
            pending.extend(stmt.blocks)
    return total
