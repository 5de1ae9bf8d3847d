"""Histories and modules as shown in notebooks."""

from __future__ import annotations

import numpy as np

import adjit as aj
from adjit import nn, tf


def test_histories_are_shown_as_pictures() -> None:
    trainer = nn.Trainer(nn.Dense(1), "mse", "sgd")
    history = trainer.fit(np.ones((4, 2), "f4"), np.ones((4, 1), "f4"), epochs=3, verbose=0)
    assert history._repr_html_().startswith("<svg")
    assert history.plot()._repr_html_() == history._repr_html_()  # type: ignore[attr-defined]
    assert "|" in history.plot()  # text elsewhere
    assert repr(history).startswith("<history of 3 epochs: loss ")
    assert nn.history.History()._repr_html_() == "&lt;history of 0 epochs&gt;"


def test_summaries_are_shown_as_tables() -> None:
    model = nn.Sequential([nn.Dense(2, name="<first>"), nn.Dense(1)])
    model(np.ones((1, 3), "f4"))
    summary = model.summary()
    assert isinstance(summary, str)
    for html in (summary._repr_html_(), model._repr_html_()):  # type: ignore[attr-defined]
        assert html.startswith("<table>")
        assert "f32[3,2]" in html
        assert "<first>" not in html


def test_completion_of_layers_shows_layers_alone() -> None:
    names = dir(tf.keras.layers)
    assert {"Dense", "Input", "concatenate", "GRU", "Layer"} <= set(names)
    assert not {"Any", "annotations", "copy", "ops", "nn", "Sequence", "_layer"} & set(names)
    assert all(hasattr(tf.keras.layers, name) for name in names)
    assert aj.__name__ == "adjit"
