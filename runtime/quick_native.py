"""The fast paths of eager calls in native code (`codegen/eager`), for programs that make many such calls.

Programs that make few use the Python methods of `quick.py` and `quick_arrays.py`, for which LLVM need not be loaded. In a program that
makes thousands, native functions replace them; these are compiled on a thread, unless they are in the disk cache, and call the Python
methods for everything that they decline.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping, Sequence
from time import sleep
from typing import TYPE_CHECKING, Any

from adjit.ir.errors import AdjitError
from adjit.ir.locks import new_lock
from adjit.ir.ops.base import Op
from adjit.ir.ops.reduce import Sum
from adjit.ir.records import NamedTuple
from adjit.tracer import numpy_fallback

from .log import LINEAR_NUMBERS, TapeLog, number_of
from .recording import HERE, Here

if TYPE_CHECKING:
    from adjit.codegen.eager.functions import EagerCalls, Surroundings

    from .tensor import Tensor

LATER = 200_000  # calls after which LLVM is loaded, if no function was compiled before
POLL = 500  # calls until it is checked again whether the code is compiled
ATTRIBUTES = ("T", "__array_ufunc__", "__array_function__")


class QuickRow(NamedTuple):
    """A NumPy function, its op on floats of one dtype, and the names of the methods that call it."""

    function: Any
    op: Op
    method: str | None = None
    reflected: str | None = None


class NativeCalls:
    """The state of the replacement: not started, being compiled, done or not possible."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._calls: EagerCalls | None = None
        self._is_over = False
        self._is_late = False

    def proceed(self, cls: type[Tensor], rows: Sequence[QuickRow]) -> int | None:
        """Perform the next step; return the number of calls until the next one, None if there is none."""
        with self._lock:
            if self._is_over:
                return None
            if not self._is_late and "llvmlite" not in sys.modules:
                self._is_late = True
                return LATER
            try:
                self._is_over = not (self._begin(cls, rows) if self._calls is None else self._go_on(cls))
            except (AdjitError, OSError, MemoryError):  # a user's op must not fail because of this
                self._is_over = True
            return None if self._is_over else POLL

    @property
    def replaced(self) -> Mapping[str, Any]:
        """The Python methods that were replaced, by name."""
        return {} if self._calls is None else self._calls.replaced

    def settle(self, cls: type[Tensor], rows: Sequence[QuickRow]) -> bool:
        """Replace the methods now, and return whether that is possible here: for tests and measurements."""
        with self._lock:
            self._is_late = True
            while self.proceed(cls, rows) is not None:
                sleep(0.001)
        return self._calls is not None and self._calls.is_installed

    def _go_on(self, cls: type[Tensor]) -> bool:
        """Replace the methods if the code is compiled; return whether another step is needed."""
        assert self._calls is not None
        is_ready = self._calls.is_ready()
        if is_ready:
            self._calls.install(cls, ATTRIBUTES)
        return not is_ready

    def _begin(self, cls: type[Tensor], rows: Sequence[QuickRow]) -> bool:
        """Start compiling; return whether that is possible here."""
        from adjit.codegen.eager.functions import EagerCalls, Quick, available  # noqa: PLC0415 - `import adjit` does without
        from adjit.codegen.eager.layout import RANKS  # noqa: PLC0415 - as above

        if not available():
            return False

        def method(name: str | None) -> Any:
            return name and getattr(cls, name)

        quick = []
        for function, op, forward, reflected in rows:
            number = number_of(op)
            quick.append(Quick(function, op, number, number in LINEAR_NUMBERS, method(forward), method(reflected)))
        ufuncs, products = ([q for q in quick if (q.op.name == "matmul") is is_product] for is_product in (False, True))
        sums = [Sum(tuple(range(rank))) for rank in range(RANKS)]
        self._calls = EagerCalls(ufuncs, products, [(op, number_of(op)) for op in sums], surroundings(cls))
        return True


def surroundings(cls: type[Tensor]) -> Surroundings:
    from adjit.codegen.eager.functions import Surroundings  # noqa: PLC0415 - as above
    from adjit.codegen.entry.route import slot_offset  # noqa: PLC0415 - as above

    objects = {
        "adjit_tensor_class": cls, "adjit_log_class": TapeLog, "adjit_here": HERE, "adjit_kinds": numpy_fallback.kinds,
        "adjit_user": numpy_fallback.USER, "adjit_python_ufunc": vars(cls)["__array_ufunc__"],
        "adjit_python_function": vars(cls)["__array_function__"], "adjit_python_item": vars(cls)["__getitem__"],
        "adjit_python_transpose": vars(cls)["T"].fget,
    }  # fmt: skip
    offsets = {"BUFFER": slot_offset(cls, "buffer"), "RECORDERS": slot_offset(Here, "recorders"), "LOG": slot_offset(Here, "log")}
    offsets["RUN"] = slot_offset(Here, "run")
    offsets |= {name.upper(): slot_offset(TapeLog, name) for name in ("entries", "structure", "numbers", "lost", "taken", "constants")}
    return Surroundings(objects, {"adjit_without": ctypes.addressof(numpy_fallback.loaded.word)}, offsets)


native = NativeCalls()
