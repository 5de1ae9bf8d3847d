"""What becomes of lists outside of the table of programs: at the border of a compiled function, under a tape, in the IR."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj
from adjit.ir.errors import CheckError, ShapeError, TraceError


def steps(x, limit):
    ys = []
    for _ in range(10):
        if x > limit:
            break
        ys.append((x, 2 * x))
        x = x * 1.5
    return ys


@pytest.mark.parametrize("limit", [0.0, 3.0, 1e9])
def test_a_compiled_function_gives_the_list(limit: float) -> None:
    got, want = aj.function(steps)(1.0, limit), steps(1.0, limit)
    assert type(got) is list
    assert len(got) == len(want)
    np.testing.assert_allclose(np.array(got).reshape(-1), np.array(want).reshape(-1))


def test_an_outer_tape_goes_through_the_list() -> None:
    compiled = aj.function(steps)
    x = aj.tensor(1.0)
    with aj.GradientTape() as tape:
        tape.watch(x)
        ys = compiled(x, 3.0)
        loss = ys[1][0] * ys[-1][1]
    assert float(tape.gradient(loss, x)) == pytest.approx(2 * 1.5 * 1.5**2 * 2)


def test_an_index_past_the_end_raises_when_it_runs() -> None:
    @aj.function
    def third(x, limit):
        return steps(x, limit)[2][0]

    assert third(1.0, 3.0) == 2.25
    with pytest.raises(CheckError, match="list index out of range"):
        third(1.0, 2.0)


def test_an_index_past_what_the_list_can_hold_raises_at_once() -> None:
    with pytest.raises(IndexError, match="list index out of range"):
        aj.function(lambda x: steps(x, 3.0)[10])(1.0)


def test_a_list_longer_than_the_array_for_it_raises() -> None:
    def padded(x, limit):
        return aj.stack(first(x, limit), fill=0.0, length=3)

    def first(x, limit):
        ys = [x]
        for _ in range(10):
            if x > limit:
                break
            x = x * 1.5
            ys.append(x)
        return ys

    for function, error in ((padded, ShapeError), (aj.function(padded), CheckError)):
        np.testing.assert_allclose(function(1.0, 1.0), [1.0, 1.5, 0.0])
        with pytest.raises(error, match="length=3"):
            function(1.0, 9.0)


def test_stack_fills() -> None:
    np.testing.assert_allclose(aj.stack([[1.0, 2.0]], 1, fill=-1.0, length=3), [[1.0, -1.0, -1.0], [2.0, -1.0, -1.0]])
    with pytest.raises(ShapeError, match="a length needs a fill"):
        aj.stack([1.0], length=3)


def test_a_branch_chooses_between_items_not_between_lists() -> None:
    """A copy of everything in each trip would make the loop quadratic."""

    def kept(x):
        ys = [x]
        for k in aj.range(1000):
            if x > 100:
                break
            if x > 0:
                ys.append(x + k)
        return sum(ys)

    text = str(aj.function(kept).inspect(1.0).forward)
    assert "f64[1001] = if" not in text
    assert text.count("scatter") == 1


def test_vmap_refuses_lists_of_unknown_length() -> None:
    with pytest.raises(TraceError, match="a function that vmap maps gives a list"):
        aj.vmap(lambda x: steps(x, 3.0))(np.ones(3))


def test_more_items_than_a_loop_of_unknown_length_has_room_for() -> None:
    @aj.function
    def count(x, step):
        items = []
        while x > 0:
            x = x - step
            items.append(x)
        return len(items)

    assert count(4096.0, 1.0) == 4096
    with pytest.raises(CheckError, match=r"`items` has more than 4096 items, for which a loop of unknown length has room; write `for _ in"):
        count(4097.0, 1.0)


def test_pop_from_an_empty_list() -> None:
    @aj.function
    def f(x):
        items = [x]
        while x > 1:
            x = x / 2 + items.pop() * 0
        return len(items)

    assert f(1.5) == 0
    with pytest.raises(CheckError, match="pop from empty list"):
        f(5.0)
