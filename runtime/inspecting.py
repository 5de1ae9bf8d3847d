"""The methods that inspect a compiled function. Their implementation is imported when they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adjit.ir.ops.base import Array
from adjit.ir.tracebacks import boundary

from .concrete import ConcreteFunction
from .signature import Signature

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from .inspection import Inspection
    from .profile import Profile
    from .source import Source


class InspectedCall:
    """The specialisation for a call, the arguments of the call, and the Python function."""

    __slots__ = ("concrete", "signature", "fn")

    def __init__(self, concrete: ConcreteFunction, signature: Signature, fn: Callable[..., Any]) -> None:
        self.concrete = concrete
        self.signature = signature
        self.fn = fn

    def copies(self) -> list[Array]:
        """Return the arrays that native code takes; those of variables are copied, so that none of them changes."""
        return self.concrete.convention.copies(self.signature.arrays, self.signature.stores, every=True)


class Inspectable:
    """Functions, and functions bound to an object."""

    __slots__ = ()

    @boundary
    def inspect(self, *args: Any, **kwargs: Any) -> Inspection:
        """Return what a call with these arguments runs: IR at every stage, native code, timings. Compiles if necessary, without running."""
        from .inspection import Inspection  # noqa: PLC0415 - few functions are inspected

        looked = self._looked_up(args, kwargs)
        return Inspection(looked.concrete, looked.fn, lambda: self._looked_up(args, kwargs, general=False))

    @boundary
    def profile(self, *args: Any, repeat: int | None = None, **kwargs: Any) -> Profile:
        """Measure the time of a call with these arguments, kernel by kernel.

        Runs the call `repeat` times (by default for about a second) on copies of the variables, so that none of them changes. The measured
        code is compiled for the sizes of these arguments alone.
        """
        from .profile import profile  # noqa: PLC0415 - `import adjit` does without codegen

        looked = self._looked_up(args, kwargs, general=False)
        return profile(looked.concrete, looked.signature, repeat)

    @boundary
    def debug(self, *args: Any, **kwargs: Any) -> Any:
        """Run op by op and raise NonFiniteError where the first NaN or infinity arises, forward or backward. Assigns no variable."""
        looked = self._looked_up(args, kwargs)
        return check_finite(looked.concrete, looked.signature)

    @boundary
    def explore(self, *args: Any, path: str | os.PathLike[str] = "explore.html", open: bool = True, **kwargs: Any) -> Path:
        """Write a page that links source, IR of every stage, native code, time and memory of a call with these arguments, and show it.

        It is one file without external parts. The call is run on copies of the variables, so that none of them changes.
        """
        from .explore import explore, written  # noqa: PLC0415 - profiles, which `import adjit` does without

        looked = self._looked_up(args, kwargs, general=False)
        return written(explore(looked.concrete, looked.copies(), looked.fn), path, open)

    @boundary
    def source(self, *args: Any, **kwargs: Any) -> Source:
        """Return what a call with these arguments computes as NumPy Python: text to read, and functions to run and to debug."""
        from .inspection import Inspection  # noqa: PLC0415 - as in `inspect`
        from .source import Source, text_of  # noqa: PLC0415 - brings in `ast` and astunparse

        looked = self._looked_up(args, kwargs, general=False)
        arguments, captured = looked.copies(), len(looked.concrete.convention.constants)
        seen = Inspection(looked.concrete, looked.fn)
        return Source(text_of(looked.concrete, seen.simplified, seen.halves), arguments[: len(arguments) - captured])

    def _looked_up(self, args: tuple[Any, ...], kwargs: dict[str, Any], general: bool = True) -> InspectedCall:
        """Compile for these arguments, if necessary; unless `general`, for their sizes alone."""
        raise NotImplementedError


def check_finite(concrete: ConcreteFunction, signature: Signature) -> Any:
    from .debug import check_finite  # noqa: PLC0415 - only who looks for a NaN needs the interpreter

    return check_finite(concrete, signature)
