"""The methods that export a compiled function. Their implementation is imported when they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from adjit.tracer.trace import TracedProgram

    from .export import Exported


class Exportable:
    """Functions, and functions bound to an object."""

    __slots__ = ()

    def export(
        self, path: str | os.PathLike[str], /, *args: Any, name: str | None = None, target: str = "host", threads: int = 1, **kwargs: Any
    ) -> Exported:
        """Write what a call with these arguments runs as native code that does not need Python, for C, C++ or JavaScript.

        The suffix of the path selects what is written: `.o`, `.a` or `.so` with a C header, or `.wasm` with a JavaScript module. Variables
        become a struct that every call updates, with their present values as its initial contents. `name`, by default that of the file, is
        the name of the C function and the prefix of all symbols. Targets are host, x86-64, x86-64-v2, -v3 and -v4, aarch64-linux, and
        wasm32.
        """
        from .export import export  # noqa: PLC0415 - few functions are exported

        return export(self._traced_alone(args, kwargs), path, name, target, threads)

    def address(self, *args: Any, signature: str | None = None, **kwargs: Any) -> Any:
        """Return a C function pointer to what a call with these arguments computes, as a function of ctypes.

        Its attributes `pointer` and `signature` are the address and the C type, for `scipy.LowLevelCallable`, cffi, Numba and C libraries.
        The code neither needs nor holds the GIL, and any number of threads may call it at once; it lives as long as the returned object.
        """
        from .address import address  # noqa: PLC0415 - as above

        return address(self._traced_alone(args, kwargs), signature)

    def _traced_alone(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TracedProgram:
        """Trace the function for code that runs without Python."""
        raise NotImplementedError
