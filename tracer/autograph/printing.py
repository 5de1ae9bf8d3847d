"""Python text of rewritten functions, by astunparse."""

from __future__ import annotations

import ast
import io

from astunparse.unparser import Unparser

from . import expression_rewriter as rewriter

BINARY = {symbol: kind for kind, symbol in rewriter.SYMBOLS.items()}
UNARY = {symbol: kind for kind, symbol in rewriter.SIGNS.items()}
COMPARED = {symbol: kind for kind, symbol in rewriter.COMPARED.items()}


class Printer(Unparser):  # type: ignore[misc]
    """astunparse, without its use of attributes of `ast` that Python 3.12 deprecates and 3.14 does not have."""

    def _Attribute(self, t: ast.Attribute) -> None:  # noqa: N802 - astunparse's name
        self.dispatch(t.value)
        if isinstance(t.value, ast.Constant) and isinstance(t.value.value, int):
            self.write(" ")  # `1.real` would be a float
        self.write(f".{t.attr}")


class Plain(ast.NodeTransformer):
    """Writes operators and attributes as the user did: what becomes of them is the same in all places, and would hide everything else."""

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802 - the name that ast gives it
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="ag__"), attr=name), args=[ast.Constant(value=str(first)), *rest]):
                match name, rest:
                    case "binary", [left, right]:
                        return ast.BinOp(left, BINARY[first](), right)
                    case "compared", [left, right]:
                        return ast.Compare(left, [COMPARED[first]()], [right])
                    case "unary", [operand]:
                        return ast.UnaryOp(UNARY[first](), operand)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="ag__"), attr="attribute"), args=[value, ast.Constant(value=str(attribute))]
            ):
                return ast.Attribute(value, attribute, ast.Load())
            case ast.Call(func=ast.Attribute(value=ast.Name(id="ag__"), attr="entered"), args=[manager]):
                return manager
        return node


def unparse(node: ast.AST) -> str:
    out = io.StringIO()
    Printer(Plain().visit(node), file=out)
    return out.getvalue()
