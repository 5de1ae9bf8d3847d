"""How programs with effects are listed: with the result of Python, or (`refused`) an error that names the line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Effect(NamedTuple):
    fn: Callable[..., Any]
    calls: tuple[tuple[Any, ...], ...]
    refused: bool


EFFECTS: list[Effect] = []


def effect(*calls: tuple[Any, ...], refused: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        EFFECTS.append(Effect(fn, calls, refused))
        return fn

    return register
