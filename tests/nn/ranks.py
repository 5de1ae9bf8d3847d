"""Programs that test_distributed_training.py runs on several ranks: `mpiexec -n 2 python ranks.py NAME`."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from adjit import distributed as d
from adjit import nn

FOLDER = Path(os.environ["ADJIT_NOTES"])
RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 4)).astype(np.float32)
Y = (X.sum(1) > 0).astype(np.int32) + (X[:, 0] > 1)


def trainer(**options: Any) -> nn.Trainer:
    nn.set_seed(d.rank())  # initial values differ: those of rank 0 count
    model = nn.Sequential([nn.Dense(16, activation="relu"), nn.BatchNorm(), nn.Dropout(0.1), nn.Dense(3)])
    loss = nn.losses.SparseCategoricalCrossentropy(from_logits=True)
    return nn.Trainer(model, loss, nn.optimizers.Adam(0.01), metrics=["accuracy"], distributed=True, **options)


def weights_of(t: nn.Trainer) -> str:
    arrays = (*t.model.get_weights(), *t.optimizer.get_weights())
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


def note(name: str, what: Any) -> None:
    (FOLDER / f"{name}.{d.rank()}").write_text(json.dumps(what), encoding="utf-8")


def same_bits() -> None:
    t = trainer(shards=4)
    callbacks = [nn.ModelCheckpoint(FOLDER / f"saved.{d.size()}", save_freq=3), nn.callbacks.CSVLogger(FOLDER / f"log.{d.size()}")]
    history = t.fit(X, Y, batch_size=32, epochs=2, seed=5, validation_data=(X, Y), callbacks=callbacks, verbose=2)
    note("bits", [weights_of(t), history.history, t.evaluate(X, Y, batch_size=40)])


def close() -> None:
    """Without shards, training agrees with that of one process up to rounding; layers that see their part alone are left out."""

    def made(**options: Any) -> nn.Trainer:
        nn.set_seed(1)
        model = nn.Sequential([nn.Dense(16, activation="tanh"), nn.Dense(3)])
        loss = nn.losses.SparseCategoricalCrossentropy(from_logits=True)
        return nn.Trainer(model, loss, "sgd", metrics=["accuracy", nn.metrics.AUC(from_logits=True)][:1], **options)

    whole = made()
    expected = whole.fit(X[:128], Y[:128], batch_size=32, epochs=2, verbose=0, validation_data=(X, Y))
    for t in (made(distributed=True), made(distributed=True, compiled=False)):
        history = t.fit(X[:128], Y[:128], batch_size=32, epochs=2, verbose=0, validation_data=(X, Y))
        for name in expected.history:
            np.testing.assert_allclose(history[name], expected[name], rtol=1e-5)
        for a, b in zip(t.model.get_weights(), whole.model.get_weights(), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)
    note("close", True)


def sharded() -> None:
    """With slices of the optimizer's state, training and files are the same, with all kinds of clipping."""
    for options in ({}, {"clipnorm": 0.1}, {"global_clipnorm": 0.1}, {"clipvalue": 0.01, "gradient_accumulation_steps": 2}):
        runs = []
        for shard in (False, True):
            nn.set_seed(1)
            model = nn.Sequential([nn.Dense(5, activation="tanh"), nn.Dense(3)])
            optimizer = nn.optimizers.AdamW(0.01, **options)
            loss = nn.losses.SparseCategoricalCrossentropy(from_logits=True)
            t = nn.Trainer(model, loss, optimizer, distributed=True, shard_optimizer=shard)
            t.fit(X, Y, batch_size=32, epochs=2, verbose=0)
            path = FOLDER / f"sharded-{shard}"
            t.save(path)
            d.barrier()
            runs.append(nn.read_arrays(path))
            sizes = {v.type.size for parts in optimizer.state.values() for v in parts}
            assert sizes == ({-(-n // d.size()) for n in (20, 5, 15, 3)} if shard else {20, 5, 15, 3})
            again = nn.Trainer(nn.Sequential([nn.Dense(5, activation="tanh"), nn.Dense(3)]), loss, nn.optimizers.AdamW(0.01, **options),
                               distributed=True, shard_optimizer=shard)  # fmt: skip
            again.restore(path, X[:1])
            for one in (t, again):
                one.fit(X, Y, batch_size=32, epochs=3, verbose=0)
            assert weights_of(t) == weights_of(again)
            d.barrier()
        assert runs[0].keys() == runs[1].keys()
        for name in runs[0]:
            np.testing.assert_allclose(runs[1][name], runs[0][name], rtol=2e-4, atol=1e-6)
    note("sharded", True)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        globals()[name]()
