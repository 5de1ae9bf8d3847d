"""One native kernel while it is emitted: its text, its pointers and its loop program.

A kernel is an LLVM function that takes only pointers. Shapes and strides are constants in its text, or names of sizes that it reads from a
table when they are known only at run time, so structurally identical statements give identical text and share one function.
"""

from __future__ import annotations

from collections.abc import Hashable

from adjit.ir.errors import AdjitError, VerifyError
from adjit.ir.expr import Expr
from adjit.ir.func import Stmt, Value
from adjit.ir.layout import Layout
from adjit.ir.location import Location
from adjit.ir.operand import Operand
from adjit.ir.plan import Place, Plan
from adjit.ir.target import Target

from ..cache.image import Failure
from ..interrupts.signals import LOOK
from ..llvm.lanes import Outlined, Text
from ..loops.chunks import Limits, add_nest
from ..loops.ir import Access, Extent, LoopProgram, Node
from ..loops.nest import NestSpec
from ..loops.renderer import render
from ..sizes import SIZES, definitions, native_shape, native_size, upper
from .literals import Literals
from .parallel import parallel_from
from .region import RegionNest
from .window import Strided


class Context:
    """State shared by all kernels of a module."""

    def __init__(
        self, plan: Plan, target: Target, outlined: dict[str, Outlined] | None = None, literals: Literals | None = None,
        symbols: tuple[str, ...] = (), checked: bool = False,
    ) -> None:  # fmt: skip
        self.plan = plan
        self.target = target
        self.outlined = outlined  # vector math functions that are called rather than inlined, in programs with many of them
        self.literals = literals  # constants that kernels read from a table, in large programs
        self.repeats: dict[Hashable, Kernel] = {}  # kernels of large programs, keyed by `repeats.look`
        self.packed: dict[tuple[object, ...], Place] = {}  # factors packed by enclosing loops, see packing.py
        self.symbols = symbols  # the sizes that are known only when the program runs, in the order of the table %sizes
        self.awake = False  # whether the other threads are always busy, so that they need not be woken
        self.is_final = False  # variables are being written: from here on, the call is not interrupted
        self.checked = checked  # whether loop programs are checked

    @property
    def repeats_ops(self) -> bool:
        """Whether kernels of ops that lower themselves are shared: in large programs, where they depend on nothing but their windows."""
        return self.literals is not None and not self.packed


class Kernel:
    """The text of one kernel, and what each pointer parameter refers to, in order: a place and an offset in bytes."""

    uses_runtime = False  # whether it calls the routines of `stacks.py`: loops that check for Ctrl-C or save values

    def __init__(self, context: Context) -> None:
        self.plan = context.plan
        self.target = context.target
        self.vector_bytes = context.target.vector_bytes
        self.threads = context.target.threads
        self.text = Text(context.target)
        self.text.outlined = context.outlined
        self.text.may_look, self.text.returns_code = context.target.hosted and not context.is_final, True
        self.pointers: dict[tuple[Place, int], str] = {}  # equal addresses share one pointer, so that `copy` can detect them
        self.packed = context.packed
        self.symbols = context.symbols
        self.awake = context.awake
        self.failures: list[Failure] = []  # the meaning of each code that the kernel may return
        self.location: Location | None = None  # of the statement being emitted
        self.error: type[AdjitError] = AdjitError
        self.fails = False  # whether it may return an error code
        self.imports: set[str] = set()
        self.work_bytes: Expr = 0  # size of its scratch memory, which is passed as the last pointer
        self.helpers: list[str] = []  # functions that only this kernel calls, named after it
        self.checked = context.checked
        self.program = LoopProgram()  # its loop nests

    def come_from(self, stmt: Stmt) -> None:
        self.location = stmt.location
        self.text.locate(stmt.location)

    def pointer(self, root: Value, layout: Layout) -> str:
        offset = native_size(layout.offset) * root.type.dtype.itemsize
        place = self.plan.places[id(root)]
        name = self.pointer_to(place, offset)
        if place.kind != "view":  # a part of another buffer, with that buffer's strides
            self.set_extent(name, -offset, native_size(root.type.nbytes) - offset)
        return name

    def set_extent(self, pointer: str, start: Expr, stop: Expr) -> None:
        """The bytes around a pointer that may be accessed. Values that share a place may have different sizes: the largest counts."""
        known = self.program.extents.get(pointer)
        if known is not None:
            stop = upper(stop, known.stop)
        self.program.extents[pointer] = Extent(start, stop)

    def pointer_to(self, place: Place, offset: int = 0) -> str:
        return self.pointers.setdefault((place, offset), f"%p{len(self.pointers)}")

    def packed_pointer(self, matrix: Strided) -> str | None:
        """A pointer to the packed copy of the matrix that products read, if an enclosing loop has packed it."""
        where = next((key for key, name in self.pointers.items() if name == matrix.pointer), None)
        place = self.packed.get((*where, matrix.type.shape, matrix.strides, matrix.type.dtype)) if where is not None else None
        return self.pointer_to(place) if place is not None else None

    def take_pointers(self, count: int) -> None:
        """Declare the parameters %p0, %p1, ... for a caller that defines what they refer to."""
        self.pointers = {(Place("param", k), 0): f"%p{k}" for k in range(count)}

    def access(self, value: Operand) -> Access:
        root, layout = self.plan.windows[id(value)]
        return Access(self.pointer(root, layout), native_shape(layout.strides), value.type.dtype)

    @property
    def limits(self) -> Limits:
        return Limits(self.vector_bytes, parallel_from(self))

    def add_region(self, region: RegionNest) -> None:
        program = LoopProgram()
        region.add_to(program, self.limits)
        self.run(program)

    def add_nest(self, spec: NestSpec) -> None:
        program = LoopProgram()
        add_nest(program, spec, self.limits)
        self.run(program)

    def run(self, part: LoopProgram) -> None:
        """Append the text of a program that accesses the kernel's pointers."""
        self.work_bytes = upper(self.work_bytes, part.work_bytes)
        self.keep(part.nodes)
        render(self.text, part.nodes, self)

    def keep(self, nodes: list[Node]) -> None:
        """Make nodes a part of the kernel's program, for `inspect`, and check them."""
        self.program.nodes += nodes
        if self.checked:
            from ..loops.checker import check  # noqa: PLC0415 - loaded only where programs are checked

            try:
                check(LoopProgram(nodes, self.program.extents, self.work_bytes))
            except VerifyError as error:
                raise error.at(self.location) from None

    @property
    def leaves(self) -> bool:
        """Whether the kernel may return early."""
        return self.fails or self.text.looks

    def helper_text(self, may_look: bool = False) -> Text:
        """An empty body for a function that only this kernel calls. With `may_look`, the function receives %error if it uses it."""
        text = Text(self.target)
        text.outlined = self.text.outlined
        text.may_look = may_look and self.text.may_look
        text.locate(self.text.location)
        return text

    def add_helper(self, kind: str, params: str, text: Text) -> str:
        """Add a helper function with this body; return its name."""
        self.text.declares |= text.declares
        name = f"@{{}}.{kind}{len(self.helpers)}"
        body = "\n".join([*text.slots, *definitions(text.lines, self.symbols), *text.lines, "ret void"])
        self.helpers.append(f"define internal void {name}({params}) nounwind {{\nentry:\n{body}\n}}\n")
        return name

    def repeated(self, other: Kernel) -> Kernel:
        """Give `other`, whose pointers are known already, the text of this kernel."""
        other.text, other.helpers, other.imports, other.work_bytes = self.text, self.helpers, self.imports, self.work_bytes
        other.fails = self.fails
        return other

    def _params(self) -> list[str]:
        last = (["%work"] if self.work_bytes else []) + self.sizes_table + (["%error"] if self.leaves else [])
        return [*(f"%p{k}" for k in range(len(self.pointers))), *last]

    @property
    def sizes_table(self) -> list[str]:
        """The pointer to the sizes that are known only when the program runs, if there are any."""
        return [SIZES] if self.symbols else []

    def imported(self) -> set[str]:
        """Names of the external routines that the kernel calls."""
        return self.imports | {LOOK} if self.text.looks else self.imports

    def definition(self) -> str:
        """The LLVM function, with `{}` for its name. A kernel that may fail takes the error record last and returns a code."""
        result, last = ("i64", "ret i64 0") if self.leaves else ("void", "ret void")
        body = "\n".join([*self.text.slots, *definitions(self.text.lines, self.symbols), *self.text.lines, last])
        params = ", ".join(f"ptr {name}" for name in self._params())
        return "".join([*self.helpers, f"define hidden {result} @{{}}({params}) nounwind {{\nentry:\n{body}\n}}\n"])

    def declaration(self, name: str) -> str:
        return f"declare hidden {'i64' if self.leaves else 'void'} @{name}({', '.join(['ptr'] * len(self._params()))})"
