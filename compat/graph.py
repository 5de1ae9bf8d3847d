"""The graph of a concrete function, as far as users walk one: nodes with a name, an op and inputs. Its text is adjit's IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from adjit.ir.func import Func, Value
from adjit.ir.operand import Operand
from adjit.ir.printer import Names


class Node(NamedTuple):
    """A parameter, a statement or a result of the function."""

    name: str
    op: str
    input: list[str]


class GraphDef:
    """What `as_graph_def()` gives: `node` lists parameters, statements and results; the text is IR."""

    def __init__(self, func: Func) -> None:
        self._func = func

    @property
    def node(self) -> list[Node]:
        names = Names()

        def known(operands: Sequence[Operand]) -> list[str]:
            return [names.of(x)[1:] for x in operands if isinstance(x, Value)]

        func = self._func
        nodes = [Node(known([p])[0], "Placeholder", []) for p in func.params]
        nodes += [Node((known(s.results) or [s.op.name])[0], s.op.name, known(s.args)) for s in func.stmts]
        return nodes + [Node(f"Identity_{i}" if i else "Identity", "Identity", known([r])) for i, r in enumerate(func.results)]

    def __str__(self) -> str:
        return str(self._func)


class Graph:
    """What was traced."""

    def __init__(self, func: Func) -> None:
        self._func = func

    def as_graph_def(self) -> GraphDef:
        return GraphDef(self._func)

    def get_operations(self) -> list[Node]:
        return self.as_graph_def().node

    def __str__(self) -> str:
        return str(self._func)
