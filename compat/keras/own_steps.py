"""Training with user-defined steps: `train_step(self, data)` and `test_step`, as methods of a Keras model.

A step returns a dict of results. Its values for the last batch are those of the epoch, as in Keras; metrics, which it updates itself, are
reset at the start of each epoch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from adjit import nn
from adjit.nn.metrics import Metric
from adjit.runtime.conversion import as_called
from adjit.tracer.pytree import tree_map
from adjit.tracer.trace import current_trace

from ..function import dress_trace
from ..tensor import convert_to_tensor

STEPS = ("train_step", "test_step", "predict_step")


class OwnSteps(nn.Trainer):
    """Calls the steps of the model itself, compiled."""

    last: dict[str, float]

    def train_step(self, x: Any, y: Any, sample_weight: Any) -> Any:
        return self._called("train_step", packed(x, y, sample_weight))

    def test_step(self, x: Any, y: Any, sample_weight: Any) -> Any:
        return self._called("test_step", packed(x, y, sample_weight))

    def predict_step(self, x: Any) -> Any:
        return self._called("predict_step", x)

    def _called(self, name: str, data: Any) -> Any:
        trace = current_trace()
        if trace is not None:
            dress_trace(trace)
        out = as_called(getattr(self.model, name))(tree_map(convert_to_tensor, data))
        if name != "predict_step" and not isinstance(out, Mapping):
            raise TypeError(f"{self.model.name}.{name} returns the results of a batch by name, {{'loss': loss}}, not {type(out).__name__}")
        return out if name == "predict_step" else dict(out)

    def loss_of(self, returned: Any) -> float:
        self.last = {name: float(np.asarray(value)) for name, value in returned.items()}
        return self.last.get("loss", next(iter(self.last.values()), math.nan))

    def results(self) -> dict[str, float]:
        return dict(self.last)

    def reset_metrics(self) -> None:
        for metric in self._metrics_of_model():
            metric.reset_state()
        self.last = {}

    def _metrics_of_model(self) -> list[Metric]:
        return list(self.model.metrics)  # type: ignore[attr-defined] # it is a Keras model


def packed(x: Any, y: Any, sample_weight: Any) -> Any:
    """The batch as Keras passes it to a step."""
    if sample_weight is not None:
        return x, y, sample_weight
    return x if y is None else (x, y)


def unpacked(data: Any) -> tuple[Any, Any, Any]:
    """The inputs, labels and weights of a batch; None for missing ones."""
    given = data if isinstance(data, tuple) else (data,)
    if len(given) > 3:
        raise ValueError(f"Data is expected to be in format `x`, `(x,)`, `(x, y)`, or `(x, y, sample_weight)`, found {len(given)} parts")
    x, y, weight = (*given, None, None)[:3]
    return x, y, weight
