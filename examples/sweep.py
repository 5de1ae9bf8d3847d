"""A sweep over learning rates in other processes, by any of four libraries.

    python examples/sweep.py                                     concurrent.futures, from the standard library
    python examples/sweep.py joblib                              pip install joblib
    python examples/sweep.py dask                                pip install dask
    mpiexec -n 3 python -m mpi4py.futures examples/sweep.py mpi  pip install "adjit[mpi]"; one process distributes, the others train

A compiled function, a model and data are sent; each process finds the native code in the disk cache, or compiles it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

os.environ.setdefault("ADJIT_NUM_THREADS", "1")  # processes share the cores already

import numpy as np

import adjit as aj
from adjit import nn

RATES = [0.001, 0.01, 0.1, 0.3]


@aj.function
def mean_square(y: Any, prediction: Any) -> Any:
    return aj.mean((y - prediction) ** 2)


def train(model: nn.Module, rate: float, x: Any, y: Any) -> tuple[float, aj.Tensor]:
    """Return the loss after some epochs, and the predictions, which are tensors."""
    trainer = nn.Trainer(model, mean_square, nn.optimizers.SGD(rate))
    history = trainer.fit(x, y, batch_size=32, epochs=5, verbose=0)
    return history["loss"][-1], model(x[:3])


def with_futures(tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - one of four is needed

    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        return list(pool.map(train, *zip(*tasks, strict=True)))


def with_joblib(tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
    from joblib import Parallel, delayed  # noqa: PLC0415 - one of four is needed

    return list(Parallel(n_jobs=2)(delayed(train)(*task) for task in tasks))


def with_dask(tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
    import dask  # noqa: PLC0415 - one of four is needed

    return list(dask.compute(*(dask.delayed(train)(*task) for task in tasks), scheduler="processes", num_workers=2))


def with_mpi(tasks: Sequence[tuple[Any, ...]]) -> list[Any]:
    from mpi4py.futures import MPIPoolExecutor  # noqa: PLC0415 - one of four is needed

    with MPIPoolExecutor() as pool:
        return list(pool.starmap(train, tasks))


RUNNERS: dict[str, Callable[..., list[Any]]] = {"futures": with_futures, "joblib": with_joblib, "dask": with_dask, "mpi": with_mpi}


def main(runner: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(256, 8)).astype(np.float32)
    y = np.tanh(x[:, :1]) + x[:, 1:2] * x[:, 2:3]
    nn.set_seed(0)
    model = nn.Sequential([nn.Dense(32, activation="tanh"), nn.Dense(1)])
    model(x[:1])  # the variables exist from here on: all processes start from the same weights
    results = RUNNERS[runner]([(model, rate, x, y) for rate in RATES])
    for rate, (loss, predictions) in zip(RATES, results, strict=True):
        print(f"rate {rate:<6} loss {loss:.4f}  first prediction {float(predictions[0, 0]):+.3f}")
    best = min(zip(results, RATES, strict=True), key=lambda pair: pair[0][0])[1]
    print(f"best rate: {best}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "futures")
