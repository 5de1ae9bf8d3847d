"""Python text of rewritten functions, by astunparse."""

from __future__ import annotations

import ast
import io

from astunparse.unparser import Unparser


class Printer(Unparser):  # type: ignore[misc]
    """astunparse, without its use of attributes of `ast` that Python 3.12 deprecates and 3.14 does not have."""

    def _Attribute(self, t: ast.Attribute) -> None:  # noqa: N802 - astunparse's name
        self.dispatch(t.value)
        if isinstance(t.value, ast.Constant) and isinstance(t.value.value, int):
            self.write(" ")  # `1.real` would be a float
        self.write(f".{t.attr}")


def unparse(node: ast.AST) -> str:
    out = io.StringIO()
    Printer(node, file=out)
    return out.getvalue()
