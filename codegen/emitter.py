"""The emitter that ops see: lanes, the vector math library, and positions in the surrounding nest."""

from __future__ import annotations

from collections.abc import Callable

from adjit.ir.errors import AdjitError

from . import vecmath
from .lanes import Lanes, Reg, Text


class VectorEmitter(Lanes):
    """Implements `adjit.ir.ops.base.Emitter`."""

    def __init__(self, text: Text, width: int = 1, position: Callable[[int, int], Reg] | None = None, strict: bool = False) -> None:
        super().__init__(text, width, strict)
        self._position = position

    def call(self, function: str, *args: Reg) -> Reg:
        return vecmath.FUNCTIONS[function](self, *args)

    def strict(self) -> VectorEmitter:
        return VectorEmitter(self.text, self.width, self._position, strict=True)

    def index(self, axis: int) -> Reg:
        if self._position is None:
            raise AdjitError("this kernel has no domain to take a position in")
        return self._position(axis, self.width)
