"""Complex numbers as pairs of real ones, for functions that have any: after this pass, native code sees real numbers only."""

from __future__ import annotations

from adjit.ir.func import Func

from .rewrite import walk


def split_complex(func: Func) -> Func:
    if not has_complex(func):
        return func
    from .complex_parts import in_parts  # noqa: PLC0415 - the rules, which functions of real numbers do not need

    return in_parts(func)


def has_complex(func: Func) -> bool:
    """Whether complex numbers occur in a function."""
    values = (*func.params, *func.results, *(r for stmt in walk(func.block) for r in stmt.results))
    return any(v.type.dtype.kind == "c" for v in values)
