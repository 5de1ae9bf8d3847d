"""The trainer: one native call per step, the same bits in every run and after a restart, callbacks, data, and errors."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from adjit.codegen.native import Native
from adjit.nn.history import text_plot
from adjit.runtime.executable import Executable
from adjit.runtime.shortcut import Shortcut
from tests.nn.reference import assert_close, raises_with, training_step

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32) + (X[:, 0] > 1)


def trainer(rate: float = 0.01, **options) -> nn.Trainer:
    nn.set_seed(1)
    model = nn.Sequential([nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dropout(0.1), nn.Dense(3)])
    loss = nn.losses.SparseCategoricalCrossentropy(from_logits=True)
    return nn.Trainer(model, loss, nn.optimizers.Adam(rate), metrics=["accuracy"], **options)


def fit(t: nn.Trainer, epochs: int = 3, **options) -> nn.History:
    return t.fit(X, Y, **{"batch_size": 32, "epochs": epochs, "verbose": 0, "seed": 5, **options})


def same(a: nn.Trainer, b: nn.Trainer) -> bool:
    return all(
        np.array_equal(x, y)
        for p, q in ((a.model, b.model), (a.optimizer, b.optimizer))
        for x, y in zip(p.get_weights(), q.get_weights(), strict=True)
    )


def test_it_learns() -> None:
    t = trainer()
    history = fit(t, 30, validation_data=(X, Y))
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert history["val_accuracy"][-1] > 0.9
    results = t.evaluate(X, Y, batch_size=40)
    assert_close(results["accuracy"], (t.predict(X, batch_size=64).argmax(1) == Y).mean())
    assert_close(results["loss"], history["val_loss"][-1], 1e-5)


def test_a_run_repeats_itself() -> None:
    a, b = trainer(), trainer()
    assert fit(a).history == fit(b).history
    assert same(a, b)
    c = trainer()
    fit(c, seed=6)
    assert not same(a, c)


PROCESS = """
import hashlib
from tests.nn.test_training import fit, trainer
t = trainer()
fit(t, 2)
print(hashlib.sha256(b"".join(a.tobytes() for a in (*t.model.get_weights(), *t.optimizer.get_weights()))).hexdigest())
"""


def test_a_run_repeats_itself_in_other_processes_with_other_numbers_of_threads() -> None:
    root = Path(__file__).parents[2]
    found = {
        subprocess.run(
            [sys.executable, "-c", PROCESS], cwd=root, env={**os.environ, "ADJIT_NUM_THREADS": threads}, check=True, capture_output=True
        ).stdout
        for threads in ("1", "3")
    }  # fmt: skip
    assert len(found) == 1


def test_eager_is_compiled() -> None:
    a, b = trainer(), trainer(compiled=False)
    fit(a, 2)
    fit(b, 2)
    for x, y in zip(a.model.get_weights(), b.model.get_weights(), strict=True):
        np.testing.assert_allclose(x, y, rtol=2e-4, atol=2e-5)


def test_resuming_gives_the_same_bits(tmp_path: Path) -> None:
    whole, first, second = trainer(), trainer(), trainer()
    fit(whole, 4)
    fit(first, 2)
    first.save(tmp_path / "run")
    second.restore(tmp_path / "run", X[:1])
    assert second.epoch == 2
    fit(second, 4)
    assert same(whole, second)


@pytest.fixture
def no_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every call goes through Python, where it can be counted."""
    monkeypatch.setattr(Shortcut, "add", lambda *args: None)


def count_native_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the compiled functions, as they are called; Python in layers, tapes or optimizers fails from here on."""
    calls: list[str] = []
    run = Native.__call__

    def counted(native: Native, arrays: object) -> object:
        calls.append(native.name)
        return run(native, arrays)

    def refused(self: object, *args: object, **kwargs: object) -> None:
        raise AssertionError(f"Python runs in {type(self).__name__}")

    monkeypatch.setattr(Native, "__call__", counted)
    for cls, method in (
        (Executable, "__init__"), (nn.Module, "__call__"), (aj.GradientTape, "gradient"), (nn.optimizers.Optimizer, "apply_gradients"),
        (nn.metrics.Metric, "__call__"), (nn.losses.Loss, "__call__"),
    ):  # fmt: skip
        monkeypatch.setattr(cls, method, refused)
    return calls


@pytest.mark.usefixtures("no_entry")
def test_a_step_is_one_native_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers, gradients, the optimizer and metrics together."""
    t = trainer()
    fit(t, 1)
    calls = count_native_calls(monkeypatch)
    for k in range(4):
        t._train(X[k * 32 : k * 32 + 32], Y[k * 32 : k * 32 + 32], None)
    assert calls == ["train_step"] * 4


@pytest.mark.usefixtures("no_entry")
def test_an_epoch_is_one_native_call_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    t = trainer()
    fit(t, 1, validation_data=(X, Y))
    calls = count_native_calls(monkeypatch)
    fit(t, 3, validation_data=(X, Y))
    assert calls == (["train_step"] * 5 + ["test_step"] * 5) * 2


@pytest.mark.usefixtures("no_entry")
def test_a_step_of_ones_own_is_one_native_call(monkeypatch: pytest.MonkeyPatch) -> None:
    model, optimizer = nn.Sequential([nn.Conv2D(2, 3), nn.BatchNorm(), nn.Flatten(), nn.Dense(2)]), nn.optimizers.AdamW(global_clipnorm=1.0)
    step = training_step(model, optimizer)
    x = RNG.normal(size=(64, 28, 28, 1)).astype(np.float32)  # too much for the entry that has no Python at all, and could not be counted
    step(x)
    calls = count_native_calls(monkeypatch)
    for _ in range(3):
        step(x)
    assert calls == ["step"] * 3


def test_a_smaller_last_batch_compiles_once_more() -> None:
    t = trainer()
    fit(t, 3)
    assert t._train.trace_count == 2


@pytest.mark.one_size("counts traces")
def test_one_program_serves_all_smaller_batches() -> None:
    """Training, evaluation and prediction each have a program for whole batches, and one for batches of all other sizes."""
    t = trainer()
    fit(t, 1)
    for n in (140, 131, 150):
        t.fit(X[:n], Y[:n], batch_size=32, epochs=t.epoch + 1, verbose=0)
        t.evaluate(X[:n], Y[:n])
        assert t.predict(X[:n]).shape == (n, 3)
    assert t._train.trace_count == t._test.trace_count == t._predict.trace_count == 2
    assert "train_step(x: f32[B,4], y: i32[B])" in t._train.pretty_printed_signature()


@pytest.mark.one_size("prints the programs of a step")
def test_the_program_of_a_batch_does_not_depend_on_those_before() -> None:
    """A run that continues in the middle of an epoch, with the smaller batch first, uses the same programs."""
    whole, rest = trainer(), trainer()
    fit(whole, 1)
    rest.epoch, rest.step, rest._resumes = 0, 4, True
    fit(rest, 2)
    assert rest._train.pretty_printed_signature() == whole._train.pretty_printed_signature()


def test_evaluation_of_few_examples_weights_them_as_numpy_does() -> None:
    t = trainer()
    fit(t, 1)
    for n in (2, 7, 33, 1):
        wanted = np.mean(t.predict(X[:n]).argmax(1) == Y[:n])
        assert_close(t.evaluate(X[:n], Y[:n])["accuracy"], wanted, 1e-6)


def test_batches_of_every_kind() -> None:
    batches = [(X[k : k + 50], Y[k : k + 50]) for k in range(0, 150, 50)]

    def generator():
        yield from batches

    reference = trainer()
    fit(reference, 2, batch_size=50, shuffle=False)
    for data in (batches, generator):
        t = trainer()
        t.fit(data, epochs=2, verbose=0)
        assert same(reference, t)
    endless = trainer()

    def forever():
        while True:
            yield from batches

    endless.fit(forever(), epochs=2, steps_per_epoch=3, verbose=0)
    assert same(reference, endless)
    exact = trainer()
    exact.fit(generator, epochs=2, steps_per_epoch=3, verbose=0)
    assert same(reference, exact)
    with raises_with(ValueError, "gave no batches", "exhausted after one epoch"):
        trainer().fit(generator(), epochs=2, verbose=0)


def test_structures_as_inputs() -> None:
    class Two(nn.Module):
        def __init__(self):
            self.dense = nn.Dense(1)

        def call(self, inputs):
            return self.dense(inputs["a"] + inputs["b"])

    t = nn.Trainer(Two(), "mse", "sgd")
    history = t.fit({"a": X, "b": X}, Y.astype(np.float32), epochs=5, batch_size=50, verbose=0)
    assert history["loss"][-1] < history["loss"][0]


def test_sample_weights() -> None:
    keep = np.zeros(150, np.float32)
    keep[:75] = 2.0
    a, b = (nn.Trainer(nn.Dense(1, kernel_initializer="ones"), "mse", nn.optimizers.SGD(0.1)) for _ in range(2))
    y = X.sum(1)
    a.fit(X, y, sample_weight=keep, epochs=1, batch_size=150, verbose=0, shuffle=False)
    b.fit(X[:75], y[:75], epochs=1, batch_size=75, verbose=0, shuffle=False)
    assert_close(a.model.kernel, b.model.kernel, 1e-5)


def test_validation_split_is_the_end() -> None:
    t = trainer()
    history = fit(t, 1, validation_split=0.2)
    assert_close(t.evaluate(X[120:], Y[120:])["loss"], history["val_loss"][0], 1e-6)


def test_early_stopping_restores_the_best() -> None:
    t = trainer(0.3)
    values = iter([3.0, 2.0, 2.5, 2.6, 2.7, 2.8])
    best: list[list[np.ndarray]] = []

    class Fake(nn.Callback):
        def on_epoch_end(self, epoch, logs):
            logs["score"] = next(values)
            if epoch == 1:
                best.append(self.trainer.model.get_weights())

    stop = nn.EarlyStopping("score", patience=2, restore_best_weights=True)
    history = fit(t, 10, callbacks=[Fake(), stop])
    assert (len(history.epoch), stop.stopped_epoch, stop.best_epoch) == (4, 3, 1)
    assert all(np.array_equal(a, b) for a, b in zip(best[0], t.model.get_weights(), strict=True))
    with raises_with(KeyError, "val_loss", "validation data"):
        fit(trainer(), 1, callbacks=[nn.EarlyStopping()])


def test_callbacks(tmp_path: Path) -> None:
    t = trainer()
    seen: list[int] = []
    fit(
        t, 3, validation_data=(X, Y),
        callbacks=[
            nn.ModelCheckpoint(tmp_path / "run-{epoch}"),
            nn.ModelCheckpoint(tmp_path / "best", save_best_only=True, save_weights_only=True),
            nn.callbacks.CSVLogger(tmp_path / "log.csv"),
            nn.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
            nn.callbacks.LambdaCallback(on_batch_end=lambda step, logs: seen.append(step)),
        ],
    )  # fmt: skip
    assert sorted(p.name for p in tmp_path.iterdir()) == ["best", "log.csv", "run-0", "run-1", "run-2"]
    lines = (tmp_path / "log.csv").read_text().splitlines()
    assert lines[0] == "epoch,loss,accuracy,val_loss,val_accuracy"
    assert len(lines) == 4
    assert_close(t.optimizer.learning_rate, 0.01 / 8)
    assert seen == [0, 1, 2, 3, 4] * 3
    plateau = nn.callbacks.ReduceLROnPlateau("loss", factor=0.1, patience=1, min_delta=10.0, min_lr=5e-5)
    fit(t, 6, callbacks=[plateau])
    assert_close(t.optimizer.learning_rate, 5e-5)


def test_history_plots(tmp_path: Path) -> None:
    history = fit(trainer(), 4, validation_data=(X, Y))
    text = history.plot()
    assert "* loss" in text
    assert "o val_accuracy" in text
    assert len(text.splitlines()) == 2 * 14 + 1
    with raises_with(KeyError, "'lost'", "loss, accuracy"):
        history["lost"]
    picture = tmp_path / "curve.png"
    told = history.plot(picture)
    assert picture.exists() or "matplotlib is not installed" in told
    assert "1e+0" not in text_plot({"a": [math.nan, 1.0]})
    assert "nothing to plot" in text_plot({"a": [math.nan]})


def test_progress_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    fit(trainer(), 2, verbose=2)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("epoch 1/2  5 steps in")
    assert "accuracy" in lines[1]
    fit(trainer(), 1, verbose=1)
    assert "5 steps" in capsys.readouterr().out


def test_nan_losses_raise_and_say_where() -> None:
    bad = X.copy()
    bad[7, 1] = np.nan
    with raises_with(ArithmeticError, "nan", "epoch 1", "x", "clean the data"):
        trainer().fit(bad, Y, verbose=0)
    wild = nn.Trainer(nn.Sequential([nn.Dense(4), nn.Dense(1)]), "mse", nn.optimizers.SGD(1e30))
    with raises_with(ArithmeticError, "layers.0.kernel", "learning rate", "global_clipnorm", "on_nan"):
        wild.fit(X, X[:, :1], epochs=50, verbose=0)
    trainer().fit(bad, Y, verbose=0, on_nan="ignore")


def test_bad_data_is_named() -> None:
    with raises_with(ValueError, "x [150, 4], y [149]"):
        trainer().fit(X, Y[:-1], verbose=0)
    with raises_with(ValueError, "labels i32[32,2]", "f32[32,3]"):
        trainer().fit(X, np.stack([Y, Y], 1), verbose=0)
    with raises_with(TypeError, "not one number"):
        nn.Trainer(nn.Dense(1), nn.losses.MeanSquaredError(reduction=None)).fit(X, Y, verbose=0)
    unused = nn.Sequential([nn.Dense(3)])
    unused.extra = aj.Variable(np.zeros(2), name="extra")
    with raises_with(ValueError, "gradient of extra is None"):
        nn.Trainer(unused, "mse").fit(X, X[:, :3], verbose=0)


def test_labels_that_are_not_classes_are_named() -> None:
    with raises_with(IndexError, "step 0 of epoch 1", "y holds 5 to 7", "from 0"):
        trainer().fit(X, Y + 5, verbose=0)


def test_lists_of_numbers_are_arrays() -> None:
    a, b = trainer(), trainer()
    fit(a, 1)
    b.fit(X.tolist(), Y.tolist(), batch_size=32, epochs=1, verbose=0, seed=5)
    assert same(a, b)
    with raises_with(ValueError, "ragged sequence", "pad it to one length"):
        trainer().fit([[1.0, 2.0], [3.0]], [0, 1], verbose=0)


def test_several_outputs() -> None:
    x = nn.Input((4,))
    model = nn.Model(x, {"sum": nn.Dense(1)(x), "class": nn.Dense(3)(x)})
    losses = {"sum": "mse", "class": nn.losses.SparseCategoricalCrossentropy(from_logits=True)}
    history = nn.Trainer(model, losses, nn.optimizers.Adam(0.05)).fit(X, {"sum": X.sum(1), "class": Y}, epochs=10, verbose=0)
    assert history["loss"][-1] < 0.3 * history["loss"][0]


def test_frozen_layers_stay() -> None:
    t = trainer()
    t.model(X[:1])
    t.model.layers[0].trainable = False
    before = t.model.layers[0].get_weights()
    fit(t, 1)
    assert all(np.array_equal(a, b) for a, b in zip(before, t.model.layers[0].get_weights(), strict=True))


def test_curves_are_drawn_as_svg_with_nothing_installed(tmp_path: Path) -> None:
    history = nn.History()
    for epoch in range(12):
        history.append(epoch, {"loss": 10.0 ** (-epoch / 3), "val_loss": 2.0 * 10.0 ** (-epoch / 3), "accuracy": epoch / 12})
    text = history.plot(tmp_path / "curves.svg")
    assert "val_loss" in text
    picture = ElementTree.parse(tmp_path / "curves.svg").getroot()
    lines = list(picture.iter("{http://www.w3.org/2000/svg}polyline"))
    assert [len(line.attrib["points"].split()) for line in lines] == [12, 12, 12]
    labels = {t.text for t in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert {"loss (log)", "accuracy", "epoch", "val_loss"} <= labels
