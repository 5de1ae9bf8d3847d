"""Data-parallel training steps on 1, 2 and 4 ranks, compared with torch DDP and the cost model; all-reduces inside a compiled function.

    python benchmarks/distributed.py [--ranks 1 2 4] [--rounds 5] [--torch PYTHON] [--check]

Ranks have one thread each, and a core each where there are enough. A time is the least of many steps, of the slowest rank; runs alternate,
so that other work on the machine disturbs all alike. `apart` are the same ranks on the same parts of a batch, which exchange nothing and
train separate networks: this is the largest speed-up that the machine allows, whose cores share caches and memory.

The prediction is the cost model of docs/distributed.md: c0 + c1 b, fitted to steps of one rank with batches of b = 32 to 256, for the part
of a rank, plus the measured all-reduce of as many gradients; ranks that outnumber the cores take turns. `--torch` is a Python that has
torch, if this one has none. With `--check`, hashes of the weights after 200 steps with `shards=4` are compared, with 1 and 2 threads.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

MODELS = {"mnist": [784, 512, 256, 10], "wide": [1024, 2048, 2048, 10]}
BATCH = 256
PARTS = (1, 2, 4, 8)  # of the batch, which one rank computes for the cost model
STEPS = {"mnist": 150, "wide": 15}
CORES = os.cpu_count() or 1
ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {"ADJIT_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


# ---- one rank of a run


def timed(step: Callable[[], Any], count: int, barrier: Callable[[], Any]) -> list[float]:
    out = []
    for _ in range(count):
        barrier()
        started = time.perf_counter()
        step()
        out.append(time.perf_counter() - started)
    return out


def adjit_step(model: str, batch: int = BATCH, shards: int | None = None, apart: bool = False) -> tuple[Callable[[], Any], list[Any]]:
    """A compiled step on this rank's part of the batch, and the variables that it trains."""
    import numpy as np

    import adjit as aj
    from adjit import distributed as d

    rng, sizes = np.random.default_rng(0), MODELS[model]
    weights = [aj.Variable((rng.normal(size=s) * np.sqrt(2 / s[0])).astype("f4")) for s in pairwise(sizes)]
    biases = [aj.Variable(np.zeros(n, "f4")) for n in sizes[1:]]
    x, y = rng.normal(size=(batch, sizes[0])).astype("f4"), rng.integers(0, 10, batch)

    def gradients(x: Any, y: Any) -> Any:
        with aj.GradientTape() as tape:
            h = x
            for w, b in zip(weights, biases, strict=True):
                h = h @ w + b if w is weights[-1] else aj.maximum(h @ w + b, 0)
            z = h - aj.max(h, 1, keepdims=True)
            log = z - aj.log(aj.sum(aj.exp(z), 1, keepdims=True))
            loss = -aj.mean(log[np.arange(x.shape[0]), y])
        return loss, tape.gradient(loss, [*weights, *biases])

    mean = gradients if apart else d.data_parallel(gradients, shards)

    @aj.function
    def step(x: Any, y: Any) -> Any:
        loss, found = mean(x, y)
        for v, g in zip([*weights, *biases], found, strict=True):
            v.assign_sub(0.01 * g)
        return loss

    mine = d.part(x), d.part(y)
    step(*mine)
    return lambda: step(*mine), [*weights, *biases]


def run_adjit(model: str, batch: int, apart: bool = False) -> float:
    from adjit.ir.world import world

    step, _ = adjit_step(model, batch, apart=apart)
    ranks = world()
    if ranks.size == 1:
        return min(timed(step, STEPS[model], lambda: None))
    times = ranks.comm.allgather(timed(step, STEPS[model], ranks.comm.Barrier))
    return min(map(max, *times))


def run_reductions(_: str, __: int) -> dict[str, float]:
    """Seconds of an all-reduce in a compiled function, less those of the rest of it: of several sizes, and of a model's gradients."""
    import numpy as np

    import adjit as aj
    from adjit import distributed as d
    from adjit.ir.world import world

    ranks, out = world(), {}

    @aj.function(static=["reduce"])
    def step(x: Any, n: Any, reduce: bool) -> Any:
        for _ in aj.range(n):
            x = (d.all_reduce(x) if reduce else x) * 0.5
        return x

    def best(x: Any, count: int, reduce: bool) -> float:
        step(x, count, reduce)
        times = ranks.comm.allgather(timed(lambda: step(x, count, reduce), 100, ranks.comm.Barrier))
        return min(map(max, *times))

    sizes = [(model, sum(a * b for a, b in pairwise(shape)), 1) for model, shape in MODELS.items()]
    for name, size, count in (*sizes, ("1 KB", 256, 50), ("100 KB", 25_600, 10), ("1 MB", 262_144, 4), ("10 MB", 2_621_440, 1)):
        x = np.ones(size, "f4")
        out[name] = (best(x, count, True) - best(x, count, False)) / count
    return out


def run_hash(model: str, batch: int) -> str:
    step, variables = adjit_step(model, batch, shards=4)
    for _ in range(199):
        step()
    return hashlib.sha256(b"".join(v.numpy().tobytes() for v in variables)).hexdigest()


def run_torch(model: str, rank: int, size: int, port: str) -> float:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    if sys.platform == "linux":
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # the host's name need not have an address
    sizes, layers = MODELS[model], []
    for i, (a, b) in enumerate(pairwise(sizes)):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()] if i < len(sizes) - 2 else [torch.nn.Linear(a, b)]
    net: Any = torch.nn.Sequential(*layers)
    if size > 1:
        dist.init_process_group("gloo", rank=rank, world_size=size)
        net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer, entropy = torch.optim.SGD(net.parameters(), 0.01), torch.nn.CrossEntropyLoss()
    x, y = torch.randn(BATCH // size, sizes[0]), torch.randint(0, 10, (BATCH // size,))

    def step() -> None:
        optimizer.zero_grad()
        entropy(net(x), y).backward()
        optimizer.step()

    step()
    best = min(timed(step, STEPS[model], dist.barrier if size > 1 else lambda: None))
    if size > 1:
        dist.destroy_process_group()
    return best


# ---- runs


def launched(kind: str, model: str, ranks: int, batch: int = BATCH, **more: str) -> Any:
    """The result of a run on several ranks under mpiexec."""
    path = shutil.which("mpiexec", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
    if path is None:
        sys.exit('needs mpiexec: pip install "adjit[mpi]"')
    open_mpi = "Open MPI" in subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    place = "core" if ranks <= CORES else "none"
    options = ["--oversubscribe", "--allow-run-as-root", "--bind-to", place] if open_mpi else ["-bind-to", place]
    line = [path, *options, "-n", str(ranks), sys.executable, __file__, "--worker", kind, model, str(batch)]
    done = subprocess.run(line, env={**os.environ, **ENVIRONMENT, **more}, capture_output=True, text=True, timeout=600)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return json.loads(done.stdout.strip().splitlines()[-1])


def launched_torch(python: str, model: str, ranks: int) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    lines = [[python, __file__, "--worker", "torch", model, str(rank), str(ranks), port] for rank in range(ranks)]
    running = [subprocess.Popen(line, env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, text=True) for line in lines]
    return max(float(each.communicate(timeout=600)[0].strip().splitlines()[-1]) for each in running)


def has_torch(python: str) -> bool:
    return subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0


class Best(dict[Any, float]):
    """The least time of each run."""

    def note(self, key: Any, seconds: float) -> None:
        self[key] = min(seconds, self.get(key, seconds))


class Measured:
    """Steps by (framework, model, ranks), steps of one rank by (model, part of the batch), all-reduces by (what, ranks)."""

    def __init__(self, ranks: list[int]) -> None:
        self.ranks = ranks
        self.steps, self.parts, self.reductions = Best(), Best(), Best()

    def round(self, torch: str | None) -> None:
        for model in MODELS:
            for ranks in self.ranks:
                self.steps.note(("adjit", model, ranks), launched("adjit", model, ranks))
                if ranks <= CORES:
                    self.steps.note(("apart", model, ranks), launched("apart", model, ranks))
                if torch is not None:
                    self.steps.note(("torch DDP", model, ranks), launched_torch(torch, model, ranks))
            for part in PARTS:
                self.parts.note((model, part), launched("adjit", model, 1, BATCH // part))
            if 1 in self.ranks:  # a run of the whole batch on one rank is both
                self.steps.note(("adjit", model, 1), self.parts[model, 1])
                self.parts.note((model, 1), self.steps["adjit", model, 1])
        for ranks in self.ranks:
            if ranks > 1:
                for name, seconds in launched("reductions", "mnist", ranks).items():
                    self.reductions.note((name, ranks), seconds)

    def speed_up(self, name: str, model: str, ranks: int) -> float:
        return self.steps[name, model, self.ranks[0]] / self.steps[name, model, ranks]

    def fitted(self, model: str) -> tuple[float, float]:
        """c0 and c1 of the step of one rank, c0 + c1 b: least squares of relative errors."""
        import numpy as np

        times = np.array([self.parts[model, part] for part in PARTS])
        rows = np.array([(1.0, BATCH // part) for part in PARTS])
        (fixed, each), *_ = np.linalg.lstsq(rows / times[:, None], np.ones(len(PARTS)), rcond=None)
        return float(fixed), float(each)

    def predicted(self, model: str, ranks: int) -> float:
        fixed, each = self.fitted(model)
        turns = max(1.0, ranks / CORES)
        return (fixed + each * BATCH / ranks) * turns + (self.reductions[model, ranks] if ranks > 1 else 0.0)


def show_steps(found: Measured) -> None:
    print("one step, ms (speed-up over one rank)")
    for name, model in dict.fromkeys((name, model) for name, model, _ in found.steps):
        counts = [r for r in found.ranks if (name, model, r) in found.steps]
        cells = [f"{r} ranks {found.steps[name, model, r] * 1e3:7.2f} ({found.speed_up(name, model, r):.2f}x)" for r in counts]
        print(f"  {name:10} {model:6} {'   '.join(cells)}")


def show_model(found: Measured) -> None:
    print("cost model, ms")
    for model in MODELS:
        fixed, each = found.fitted(model)
        sums = ", ".join(f"A({r}) {found.reductions[model, r] * 1e3:.2f}" for r in found.ranks if r > 1)
        print(f"  {model:6} c0 {fixed * 1e3:.2f}, c1 {each * 1e3:.4f}, {sums}")
        for ranks in found.ranks:
            guess, real = found.predicted(model, ranks), found.steps["adjit", model, ranks]
            print(f"         {ranks} ranks: predicted {guess * 1e3:7.2f}, measured {real * 1e3:7.2f} ({(guess / real - 1) * 100:+.0f} %)")


def show_reductions(found: Measured) -> None:
    print("all-reduce in a compiled function, µs")
    for ranks in found.ranks[1:]:
        cells = [f"{name} {seconds * 1e6:.1f}" for (name, r), seconds in found.reductions.items() if r == ranks and name not in MODELS]
        print(f"  {ranks} ranks: {'   '.join(cells)}")


def show_goals(found: Measured) -> None:
    """What two ranks on two cores should reach."""
    goals = [
        ("speed-up of wide", found.speed_up("adjit", "wide", 2), ">=", 1.8, "x"),
        ("speed-up of mnist", found.speed_up("adjit", "mnist", 2), ">=", 1.6, "x"),
        ("all-reduce of 1 KB", found.reductions["1 KB", 2] * 1e6, "<=", 6.0, " µs"),
        ("all-reduce of 10 MB", found.reductions["10 MB", 2] * 1e3, "<=", 1.2, " ms"),
    ]
    print("two ranks")
    for what, value, sign, limit, unit in goals:
        met = value >= limit if sign == ">=" else value <= limit
        print(f"  {what:20} {value:6.2f}{unit} (goal {sign} {limit}{unit}) {'ok' if met else 'MISSED'}")


def main(options: argparse.Namespace) -> None:
    torch = options.torch if has_torch(options.torch) else None
    if torch is None:
        print(f"{options.torch} has no torch: pass a Python that has it as --torch PYTHON")
    found = Measured(options.ranks)
    for _ in range(options.rounds):
        found.round(torch)
    show_steps(found)
    show_model(found)
    show_reductions(found)
    if {1, 2} <= set(options.ranks):
        show_goals(found)
    if options.check:
        hashes = {launched("hash", "mnist", r, ADJIT_NUM_THREADS=t) for r in (1, 2, 4) for t in ("1", "2")}
        print(f"weights of mnist after 200 steps on 1, 2 and 4 ranks with 1 and 2 threads: {len(hashes)} hash")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        kind, model, *rest = sys.argv[2:]
        if kind == "torch":
            print(run_torch(model, int(rest[0]), int(rest[1]), rest[2]))
        else:
            result = {"adjit": run_adjit, "apart": partial(run_adjit, apart=True), "reductions": run_reductions, "hash": run_hash}[kind](
                model, int(rest[0])
            )
            from adjit import distributed

            if distributed.rank() == 0:
                print(json.dumps(result))
    else:
        parser = argparse.ArgumentParser()
        parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
        parser.add_argument("--rounds", type=int, default=5)
        parser.add_argument("--torch", "--python-peers", default=sys.executable)
        parser.add_argument("--check", action="store_true")
        main(parser.parse_args())
