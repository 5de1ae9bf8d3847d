"""The graph of a concrete function, for users who traverse it: nodes with a name, an op and inputs. Its text is adjit's IR."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import NamedTuple

from adjit.ir.func import Func
from adjit.ir.operand import Operand


class Node(NamedTuple):
    """A parameter, a statement or a result of the function."""

    name: str
    op: str
    input: list[str]


class GraphDef:
    """The result of `as_graph_def()`: `node` lists parameters, statements and results; the text is IR."""

    def __init__(self, func: Func) -> None:
        self._func = func

    @property
    def node(self) -> list[Node]:
        names: dict[int, str] = {}

        def named(value: Operand, hint: str) -> str:
            taken = set(names.values())
            numbered = (hint if not i else f"{hint}_{i}" for i in count())
            names[id(value)] = next(name for name in numbered if name not in taken)
            return names[id(value)]

        def known(operands: Sequence[Operand]) -> list[str]:
            return [names[id(x)] for x in operands if id(x) in names]

        func = self._func
        nodes = [Node(named(p, p.name or "arg"), "Placeholder", []) for p in func.params]
        for stmt in func.stmts:
            inputs = known(stmt.args)
            own = [named(r, getattr(r, "name", None) or stmt.op.name) for r in stmt.results]
            nodes.append(Node(own[0] if own else stmt.op.name, stmt.op.name, inputs))
        return nodes + [Node(f"Identity_{i}" if i else "Identity", "Identity", known([r])) for i, r in enumerate(func.results)]

    def __str__(self) -> str:
        return str(self._func)


class Graph:
    """The graph of a traced function."""

    def __init__(self, func: Func) -> None:
        self._func = func

    def as_graph_def(self) -> GraphDef:
        return GraphDef(self._func)

    def get_operations(self) -> list[Node]:
        return self.as_graph_def().node

    def __str__(self) -> str:
        return str(self._func)
