"""Distributions computed from uniform numbers: the same eager and compiled, with the right distribution."""

from __future__ import annotations

import numpy as np
import pytest

import adjit as aj

KEY = aj.random.key(3)

DRAWS = {
    "bernoulli": lambda key: aj.random.bernoulli(key, 0.3, (2000,)),
    "exponential": lambda key: aj.random.exponential(key, (2000,), "f64"),
    "gumbel": lambda key: aj.random.gumbel(key, (2000,), "f64"),
    "categorical": lambda key: aj.random.categorical(key, np.log(np.array([0.2, 0.5, 0.3])), shape=(2000,)),
    "permutation": lambda key: aj.random.permutation(key, 2000),
}
MEANS = {"bernoulli": 0.3, "exponential": 1.0, "gumbel": 0.5772, "categorical": 1.1, "permutation": 999.5}


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("name", ["uniform", "normal", "exponential", "gumbel"])
def test_dtypes(name, dtype):
    draw = getattr(aj.random, name)
    for mode in (lambda f: f, aj.function):
        out = mode(lambda key: draw(key, (3,), dtype))(KEY)
        assert out.dtype == np.dtype(dtype)
        picked = mode(lambda key, logits: aj.random.categorical(key, logits))(KEY, np.array([0.0, 50.0], dtype))
        assert picked.dtype == np.int64
        assert int(picked) == 1


@pytest.mark.parametrize("name", DRAWS)
def test_eager_is_compiled(name):
    eager, compiled = DRAWS[name](KEY), aj.function(DRAWS[name])(KEY)
    assert eager.dtype == compiled.dtype
    np.testing.assert_allclose(eager, compiled, rtol=1e-12)
    assert abs(np.mean(eager.numpy()) - MEANS[name]) < 0.06 * max(1.0, MEANS[name] / 100)


def test_permutations_permute():
    assert np.array_equal(np.sort(aj.random.permutation(KEY, 50)), np.arange(50))
    rows = np.arange(12).reshape(6, 2)
    mixed = aj.random.permutation(KEY, rows)
    assert np.array_equal(np.sort(mixed, 0), rows)
    assert not np.array_equal(mixed, rows)


def test_categories():
    logits = np.array([[0.0, -np.inf], [-np.inf, 0.0], [0.0, -np.inf]])
    assert np.array_equal(aj.random.categorical(KEY, logits), [0, 1, 0])
    assert np.array_equal(aj.random.categorical(KEY, logits.T, axis=0, shape=(4, 3)), [[0, 1, 0]] * 4)
    with pytest.raises(aj.ShapeError, match=r"the shape \[4\] must end with that of the distributions, \[3\]"):
        aj.random.categorical(KEY, logits, shape=(4,))
    assert np.array_equal(aj.random.bernoulli(KEY, np.array([0.0, 1.0])), [False, True])
