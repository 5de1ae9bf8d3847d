"""Smaller programs that fail in the same way: with fewer statements, results and inputs."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.programs.check import Mismatch, check
from tests.programs.draw import is_steady
from tests.programs.program import Node, Program
from tests.programs.reference import numpy_side


def shrunk(program: Program, kind: str, most: int = 400) -> Program:
    """The program with as many parts removed as possible without changing the mismatch."""
    tries = 0
    while True:
        for smaller in candidates(program):
            tries += 1
            if tries > most:
                return program
            if fails(smaller, kind):
                program = smaller
                break
        else:
            return program


class Endless(Exception):
    """A program without the line that ends its loop."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises `Endless` after so much processor time. Only the main thread handles signals; elsewhere there is no limit."""

    def give_up(*_: Any) -> None:
        raise Endless

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def fails(program: Program, kind: str, seconds: float = 20.0) -> bool:
    try:
        with at_most(seconds):
            return _fails(program, kind)
    except Endless:
        return False


def _fails(program: Program, kind: str) -> bool:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", DeprecationWarning)
        if not program.outputs or not is_steady(program):
            return False
    try:
        check(program)
    except Mismatch as error:
        return error.kind == kind
    return False


def candidates(program: Program) -> Iterator[Program]:
    for k in range(len(program.outputs)):
        if len(program.outputs) > 1:
            gone = program.outputs[k]
            outputs = (*program.outputs[:k], *program.outputs[k + 1 :])
            yield program.without(outputs=outputs, floats=tuple(f for f in program.floats if f != gone))
    for body in smaller_blocks(program.body):
        yield program.without(body=body)
    yield from with_values_given(program)
    for name in list(program.inputs):
        if len(program.inputs) > 1:
            yield program.without(inputs={k: v for k, v in program.inputs.items() if k != name})
    for name in list(program.variables):
        yield program.without(variables={k: v for k, v in program.variables.items() if k != name})


def smaller_blocks(block: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    for k, node in enumerate(block):
        before, after = block[:k], block[k + 1 :]
        yield (*before, *after)
        for _, inner in node.parts:
            yield (*before, *inner, *after)
        if len(node.parts) > 1:
            yield (*before, Node(node.text, node.guards, node.parts[:-1], node.flags), *after)
        for j, (header, inner) in enumerate(node.parts):
            for less in smaller_blocks(inner):
                if less:
                    parts = (*node.parts[:j], (header, less), *node.parts[j + 1 :])
                    yield (*before, Node(node.text, node.guards, parts, node.flags), *after)


def with_values_given(program: Program) -> Iterator[Program]:
    """The first statement's value as an input in its place."""
    names: dict[str, Any] = {**numpy_side(program.variables), **program.inputs}
    for k, node in enumerate(program.body):
        if len(node.text.splitlines()) != 1 or node.parts:
            return
        try:
            exec(compile(node.text, "<value>", "exec"), names)
        except Exception:
            return
        target = node.text.split(" = ")[0]
        if not target.isidentifier():
            return
        value = names[target]
        if isinstance(value, np.ndarray | np.generic):
            yield program.without(inputs={**program.inputs, target: np.array(value)}, body=(*program.body[:k], *program.body[k + 1 :]))
