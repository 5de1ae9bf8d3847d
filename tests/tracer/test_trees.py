"""Tools for nested structures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import adjit as aj

PARAMETERS: dict[str, Any] = {"w": [np.ones((2, 3), np.float32), np.arange(4)], "b": None, "c": (np.float64(2.5),)}


def test_flatten_and_back() -> None:
    leaves, tree = aj.tree_flatten(PARAMETERS)
    assert tree == aj.tree_structure(PARAMETERS)
    assert hash(tree) == hash(aj.tree_structure(PARAMETERS))
    assert all(a is b for a, b in zip(leaves, aj.tree_leaves(PARAMETERS), strict=True))
    assert aj.tree_unflatten(tree, "abc") == {"b": None, "c": ("a",), "w": ["b", "c"]}
    assert aj.tree_leaves([(1, 2), 3], is_leaf=lambda x: isinstance(x, tuple)) == [(1, 2), 3]


@pytest.mark.parametrize("mode", [lambda f: f, aj.function], ids=["eager", "compiled"])
def test_ravel_and_back(mode: Any) -> None:
    flat, unravel = aj.ravel_pytree(PARAMETERS)
    assert flat.dtype == np.float64
    assert np.array_equal(flat, [2.5, *[1.0] * 6, 0.0, 1.0, 2.0, 3.0])
    back = mode(unravel)(flat)
    for a, b in zip(aj.tree_leaves(back), aj.tree_leaves(PARAMETERS), strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(a, b)
    round_trip = mode(lambda p: aj.ravel_pytree(p)[0])(PARAMETERS)
    assert np.array_equal(round_trip, flat)


def test_gradients_of_vectors_are_those_of_structures() -> None:
    given = {"a": np.ones((2, 2)), "b": np.full(3, 2.0)}

    def loss(p: Any) -> Any:
        return np.sum(p["a"] ** 3) + np.sum(np.sin(p["b"]))

    flat, unravel = aj.ravel_pytree(given)
    by_vector = aj.function(aj.grad(lambda v: loss(unravel(v))))(flat)
    by_structure = aj.ravel_pytree(aj.grad(loss)(given))[0]
    np.testing.assert_allclose(by_vector, by_structure)


def test_nothing_and_too_much() -> None:
    flat, unravel = aj.ravel_pytree({})
    assert flat.shape == (0,)
    assert unravel(flat) == {}
    with pytest.raises(aj.ShapeError, match=r"takes a vector of 2 elements, not f64\[3\]"):
        aj.ravel_pytree(np.ones(2))[1](np.ones(3))
