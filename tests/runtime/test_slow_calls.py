"""Arguments that keep a call from the fast path are named, once."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest

import adjit as aj
from adjit.runtime import slow_calls
from adjit.runtime.slow_calls import unusual


class Pair(NamedTuple):
    x: Any
    y: Any


SLOW = {
    "argument 0 is a OrderedDict; pass dict": lambda: (OrderedDict(x=np.ones(2), y=np.ones(2)),),
    "argument 0 is a Pair; pass tuple": lambda: (Pair(np.ones(2), np.ones(2)),),
    "argument 0['v'] is a Variable; let the function use": lambda: ({"v": aj.Variable(np.ones(2))},),
    "argument 1[0] is a frozenset; pass a dict of its arrays": lambda: (np.ones(2), [frozenset([1])]),
}


@pytest.mark.parametrize("words", SLOW)
def test_warned_once_with_the_argument(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_calls, "PATIENCE", 5)
    f = aj.function(lambda *args: 1.0)
    given = SLOW[words]()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(12):
            f(*given)
    (warning,) = caught
    assert warning.category is aj.SlowCallWarning
    assert words in str(warning.message)
    assert warning.filename == __file__


def test_plain_arguments_give_no_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow_calls, "PATIENCE", 2)
    f = aj.function(lambda *args, **named: 1.0)
    for _ in range(5):
        f(np.ones(2), 1.0, [aj.tensor(1.0), ("a", None)], {"k": 2}, b=True)
    assert unusual("argument 0", np.float32(1.0)) is None
