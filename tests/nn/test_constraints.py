"""Constraints of variables, by formulas, alone and applied by optimizers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from adjit import nn
from tests.nn.reference import random


def test_values() -> None:
    w = random(4, 3)
    norms = np.sqrt((w * w).sum(0, keepdims=True))
    for constraint, wanted in (
        (nn.constraints.NonNeg(), np.maximum(w, 0)),
        (nn.constraints.UnitNorm(), w / (norms + 1e-7)),
        (nn.constraints.MaxNorm(0.5), w * np.clip(norms, 0, 0.5) / (norms + 1e-7)),
        (nn.constraints.MinMaxNorm(3.0, 4.0, rate=0.5), w * (0.5 * np.clip(norms, 3, 4) + 0.5 * norms) / (norms + 1e-7)),
        (nn.constraints.UnitNorm(axis=(0, 1)), w / (np.sqrt((w * w).sum()) + 1e-7)),
    ):
        np.testing.assert_allclose(constraint(w), wanted, rtol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_optimizers_apply_them(compiled: bool) -> None:
    layer = nn.Dense(3, kernel_constraint=nn.constraints.MaxNorm(0.1), bias_constraint="non_neg")
    trainer = nn.Trainer(layer, "mse", nn.optimizers.SGD(0.1), compiled=compiled)
    trainer.fit(random(8, 4).astype("f4"), random(8, 3, seed=1).astype("f4"), epochs=3, verbose=0)
    kernel, bias = (np.asarray(w) for w in layer.get_weights())
    assert (np.sqrt((kernel**2).sum(0)) <= 0.1 + 1e-6).all()
    assert (bias >= 0).all()


def test_recurrent_kernels() -> None:
    layer = nn.LSTM(2, recurrent_constraint="unit_norm")
    layer(random(1, 3, 2))
    assert [v.store.constraint is not None for v in layer.variables] == [False, True, False]


@pytest.mark.parametrize(("wrong", "error", "message"), [("no", ValueError, "there is no constraint 'no'"), (3, TypeError, "not 3")])
def test_wrong_ones(wrong: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        nn.Dense(1, kernel_constraint=wrong)
    with pytest.raises(TypeError, match=r"Dense has no option 'kernel_constrain'; .* kernel_constraint"):
        nn.Dense(1, kernel_constrain="non_neg")
