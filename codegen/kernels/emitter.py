"""The emitter passed to ops: lanes, the vector math library, and positions in the surrounding loop nest."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from adjit.ir.cost import ITERATIONS
from adjit.ir.errors import AdjitError
from adjit.ir.expr import Symbolic
from adjit.ir.sizes import Size
from adjit.ir.types import BOOL, I64, DType

from ..llvm import memory
from ..llvm.lanes import Lanes, Outlined, Reg, Text
from ..sizes import native_size
from ..vecmath import functions as vecmath


class VectorEmitter(Lanes):
    """Implements `adjit.ir.ops.lowering.Emitter`."""

    def __init__(self, text: Text, width: int = 1, position: Callable[[int, int], Reg] | None = None, strict: bool = False) -> None:
        super().__init__(text, width, strict)
        self._position = position

    def const(self, dtype: DType, value: float | int | bool) -> Reg:
        kind: object = type(value)
        if kind is Size or kind is Symbolic:  # a size that is known only at run time
            number = Lanes(self.text).convert(Reg(f"{native_size(value)}", I64), dtype)  # type: ignore[arg-type]
            return memory.splat(self.text, number, self.width)
        return super().const(dtype, value)

    def call(self, function: str, *args: Reg) -> Reg:
        """Emit a function of the vector math library: inlined, or called in programs with so many that inlining would compile slowly."""
        if self.text.outlined is None:
            return vecmath.function(function)(self, *args)
        dtype = args[0].dtype
        name = f"@vecmath_{function}_{dtype.name}x{self.width}"
        ty = self.type(dtype)
        if name not in self.text.outlined:
            self.text.outlined[name] = self._outlined(name, function, dtype, len(args))
        self.text.declares.add(self.text.outlined[name].declaration)
        return Reg(self.text.define(f"call {ty} {name}({', '.join(f'{ty} {a.name}' for a in args)})"), dtype)

    def _outlined(self, name: str, function: str, dtype: DType, arity: int) -> Outlined:
        text = Text(self.text.target)
        params = [Reg(f"%x{k}", dtype) for k in range(arity)]
        result = vecmath.function(function)(VectorEmitter(text, self.width), *params)
        ty = self.type(dtype)
        body = "\n".join([*text.slots, *text.lines, f"ret {ty} {result.name}"])
        definition = f"define hidden {ty} {name}({', '.join(f'{ty} {p.name}' for p in params)}) nounwind {{\nentry:\n{body}\n}}\n"
        return Outlined(definition, f"declare hidden {ty} {name}({', '.join([ty] * arity)})", frozenset(text.declares))

    def iterate(self, limit: int, state: Sequence[Reg], step: Callable[..., tuple[Reg, Sequence[Reg]]]) -> list[Reg]:
        """A loop that ends when `done` holds in every lane; lanes that are done keep their state."""
        text, before = self.text, self.text.block
        head, after = text.fresh_label(), text.fresh_label()
        text.jump(head)
        text.start(head)
        first = len(text.lines)
        olds = [Reg(text.fresh(), x.dtype) for x in (Reg("0", I64), self.const(BOOL, False), *state)]
        text.lines += [""] * len(olds)  # the phis, whose incoming values are known at the end
        count, finished, *old = olds
        emitted = len(text.lines)
        done, new = step(*old)
        new = [self.select(finished, x, y) for x, y in zip(old, new, strict=True)]
        finished_now = self.or_(finished, done)
        count_now = Reg(text.define(f"add i64 {count.name}, 1"), I64)
        reached = text.define(f"icmp uge i64 {count_now.name}, {limit}")
        stop = text.define(f"or i1 {reached}, {self._reduced('and', finished_now)}")
        text.put(f"br i1 {stop}, label %{after}, label %{head}")
        text.charge(ITERATIONS * (len(text.lines) - emitted))
        starts, nexts = [Reg("0", I64), self.const(BOOL, False), *state], [count_now, finished_now, *new]
        for k, (phi, start, following) in enumerate(zip(olds, starts, nexts, strict=True)):
            ty = "i64" if k == 0 else self.type(phi.dtype)
            text.lines[first + k] = f"{phi.name} = phi {ty} [{start.name}, %{before}], [{following.name}, %{text.block}]"
        text.start(after)
        return new

    def where_any(self, condition: Reg, compute: Callable[[], Sequence[Reg]], otherwise: Sequence[Reg]) -> list[Reg]:
        """A branch around code that no lane needs."""
        text, before = self.text, self.text.block
        inside, after = text.fresh_label(), text.fresh_label()
        text.put(f"br i1 {self._reduced('or', condition)}, label %{inside}, label %{after}")
        text.start(inside)
        computed = [self.select(condition, new, old) for new, old in zip(compute(), otherwise, strict=True)]
        end = text.block
        text.jump(after)
        text.start(after)
        return [
            Reg(text.define(f"phi {self.type(new.dtype)} [{old.name}, %{before}], [{new.name}, %{end}]"), new.dtype)
            for new, old in zip(computed, otherwise, strict=True)
        ]

    def _reduced(self, how: str, condition: Reg) -> str:
        """One i1: whether the condition holds in every lane ("and") or in any ("or")."""
        if self.width == 1:
            return condition.name
        ty = self.type(BOOL)
        callee = f"i1 @llvm.vector.reduce.{how}.v{self.width}i1"
        self.text.declares.add(f"declare {callee}({ty})")
        return self.text.define(f"call {callee}({ty} {condition.name})")

    def strict(self) -> VectorEmitter:
        return VectorEmitter(self.text, self.width, self._position, strict=True)

    def index(self, axis: int) -> Reg:
        if self._position is None:
            raise AdjitError("this kernel has no domain to take a position in")
        return self._position(axis, self.width)
