"""`nn.Trainer(distributed=True)` on several ranks, and the parts of it that can be tested on one rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from adjit.nn.data import Batches, Parts
from tests.mpi import on_ranks, require_ranks

PROGRAMS = str(Path(__file__).with_name("ranks.py"))


def notes(folder: Path, name: str) -> list[Any]:
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob(f"{name}.*"))]


def test_shards_give_the_same_weights_and_history_on_any_number_of_ranks(tmp_path: Path) -> None:
    require_ranks()
    found, files = [], set()
    for count in (1, 2, 4):
        folder = tmp_path / str(count)
        folder.mkdir()
        run = on_ranks(count, PROGRAMS, "same_bits", ADJIT_NOTES=str(folder))
        assert run.returncode == 0, run.stderr
        found += notes(folder, "bits")
        files.add((folder / f"saved.{count}").read_bytes())
        assert len((folder / f"log.{count}").read_text(encoding="utf-8").splitlines()) == 3
        assert run.stdout.count("epoch 1/2") == 1
    assert len(found) == 7
    assert all(each == found[0] for each in found)
    assert len(files) == 1


def test_without_shards_ranks_agree_with_one_process(tmp_path: Path) -> None:
    require_ranks()
    run = on_ranks(2, PROGRAMS, "close", ADJIT_NOTES=str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert notes(tmp_path, "close") == [True, True]


@pytest.mark.parametrize("count", [2, 4])
def test_each_rank_keeps_a_slice_of_the_state_of_the_optimizer(count: int, tmp_path: Path) -> None:
    require_ranks()
    run = on_ranks(count, PROGRAMS, "sharded", ADJIT_NOTES=str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert notes(tmp_path, "sharded") == [True] * count


def test_ranks_take_equal_parts_of_every_batch() -> None:
    data = np.arange(23)
    for shuffle in (False, True):
        whole = [x for x, *_ in Batches(data, batch_size=8, shuffle=shuffle, seed=3).epoch(1)]
        parts = [
            [x for x, *_ in Batches(data, batch_size=8, shuffle=shuffle, seed=3, parts=Parts(rank, 2, 4)).epoch(1)] for rank in range(2)
        ]
        for batch, *mine in zip(whole, *parts, strict=True):
            np.testing.assert_array_equal(np.concatenate(mine), batch[: len(batch) // 4 * 4])
    stream = [(data[:8], data[:8]), (data[8:15], data[8:15])]
    lists = [[x.tolist() for x, *_ in Batches(stream, parts=Parts(rank, 2, 2)).epoch()] for rank in range(2)]
    assert lists == [[[0, 1, 2, 3], [8, 9, 10]], [[4, 5, 6, 7], [11, 12, 13]]]
    short = Batches(np.arange(17), batch_size=8, parts=Parts(0, 2, 2))
    assert short.length == len(list(short.epoch())) == 2


def test_data_that_cannot_be_cut() -> None:
    with pytest.raises(ValueError, match="batches of 6 examples cannot be cut into 4 equal parts"):
        Batches(np.arange(20), batch_size=6, parts=Parts(0, 2, 4))
    with pytest.raises(ValueError, match="3 examples cannot be cut into 4 parts"):
        Batches(np.arange(3), batch_size=8, parts=Parts(0, 2, 4))
    with pytest.raises(ValueError, match="fewer examples than the 4 parts"):
        list(Batches([(np.arange(3),)], parts=Parts(0, 2, 4)).epoch())


class Largest(nn.metrics.Metric):
    """A metric whose state is not a sum."""

    def __init__(self) -> None:
        super().__init__("largest")
        self.state = aj.Variable(np.float64(0.0), trainable=False, name="state")

    def update_state(self, y_true: Any, y_pred: Any) -> None:
        self.state.assign(np.maximum(self.state, np.max(y_pred)))

    def result(self) -> Any:
        return self.state.read_operand()


def test_a_metric_that_is_not_a_sum_is_an_error() -> None:
    x = np.ones((8, 2), np.float32)
    t = nn.Trainer(nn.Dense(1), "mse", "sgd", metrics=[Largest()], distributed=True)
    with pytest.raises(TypeError, match="largest: state is not a sum over examples"):
        t.fit(x, x[:, :1], verbose=0)


def test_shards_need_ranks() -> None:
    with pytest.raises(ValueError, match="shards is an option of distributed=True"):
        nn.Trainer(nn.Dense(1), "mse", shards=2)


@pytest.mark.parametrize("distributed", [False, True])
def test_a_run_continues_after_the_last_saved_step(distributed: bool, tmp_path: Path) -> None:
    """Also in the middle of an epoch: same weights, same metrics of that epoch."""
    x = np.random.default_rng(0).normal(size=(64, 3)).astype(np.float32)
    path = tmp_path / "run"

    def made() -> nn.Trainer:
        nn.set_seed(3)
        model = nn.Sequential([nn.Dense(8, activation="relu"), nn.Dropout(0.2), nn.Dense(1)])
        return nn.Trainer(model, "mse", "adam", metrics=["mae"], distributed=distributed)

    def fit(t: nn.Trainer, *callbacks: nn.Callback) -> nn.History:
        return t.fit(x, x[:, :1], batch_size=8, epochs=3, verbose=0, callbacks=callbacks)

    whole, killed, again = made(), made(), made()
    expected = fit(whole)

    def stop(batch: int, logs: Any) -> None:
        if killed.epoch == 1 and batch == 6:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(killed, nn.ModelCheckpoint(path, save_freq=5), nn.callbacks.LambdaCallback(on_batch_end=stop))
    again.restore(path, x[:1])
    assert (again.epoch, again.step) == (1, 7)  # steps 5, 10 and 15
    history = fit(again)
    assert history.history == {name: values[1:] for name, values in expected.history.items()}
    for a, b in zip(whole.model.get_weights(), again.model.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
