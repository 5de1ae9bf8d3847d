"""The emitter passed to ops: lanes, the vector math library, and positions in the surrounding loop nest."""

from __future__ import annotations

from collections.abc import Callable

from adjit.ir.errors import AdjitError
from adjit.ir.types import DType

from ..llvm.lanes import Lanes, Outlined, Reg, Text
from ..vecmath import functions as vecmath


class VectorEmitter(Lanes):
    """Implements `adjit.ir.ops.base.Emitter`."""

    def __init__(self, text: Text, width: int = 1, position: Callable[[int, int], Reg] | None = None, strict: bool = False) -> None:
        super().__init__(text, width, strict)
        self._position = position

    def call(self, function: str, *args: Reg) -> Reg:
        """Emit a function of the vector math library: inlined, or called in programs with so many that inlining would compile slowly."""
        if self.text.outlined is None:
            return vecmath.FUNCTIONS[function](self, *args)
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
        result = vecmath.FUNCTIONS[function](VectorEmitter(text, self.width), *params)
        ty = self.type(dtype)
        body = "\n".join([*text.slots, *text.lines, f"ret {ty} {result.name}"])
        definition = f"define hidden {ty} {name}({', '.join(f'{ty} {p.name}' for p in params)}) nounwind {{\nentry:\n{body}\n}}\n"
        return Outlined(definition, f"declare hidden {ty} {name}({', '.join([ty] * arity)})", frozenset(text.declares))

    def strict(self) -> VectorEmitter:
        return VectorEmitter(self.text, self.width, self._position, strict=True)

    def index(self, axis: int) -> Reg:
        if self._position is None:
            raise AdjitError("this kernel has no domain to take a position in")
        return self._position(axis, self.width)
