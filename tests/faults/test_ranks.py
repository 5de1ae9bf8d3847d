"""Ranks that fail: different programs, a killed rank, Ctrl-C. The others end, with a message, and training can be resumed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.mpi import command, environment, on_ranks, require_ranks

LIMIT = 10.0  # seconds in which all ranks end after one was killed
PREAMBLE = """
import numpy as np, adjit as aj
from adjit import distributed as d
r = d.rank()
"""


@pytest.fixture(autouse=True)
def ranks() -> None:
    require_ranks()


DIFFERENT = {
    "shape": ("step = aj.function(lambda x: d.all_reduce(x))\nstep(np.ones(3 + r))", "all_reduce(f64[3])", "all_reduce(f64[4])"),
    "order": (
        "def step(x):\n  a = d.all_reduce(x) if r else d.broadcast(x)\n  return a, d.all_gather(x)\naj.function(step)(np.ones(3))",
        "broadcast_from(f64[3], root=0)",
        "all_reduce(f64[3])",
    ),
    "missing": (
        "def step(x):\n  if r == 0: d.all_reduce(x)\n  return d.all_gather(x)\naj.function(step)(np.ones(3))",
        "all_reduce(f64[3])",
        "all_gather(f64[3], ranks=2)",
    ),
    "loop": (
        "def step(x):\n  for _ in aj.range(2) if r else range(2):\n    x = d.all_reduce(x)\n  return x\naj.function(step)(np.ones(3))",
        "all_reduce(f64[3])",
        "on rank 1",
    ),
    "function": (
        "f, g = (aj.function(lambda x: d.all_reduce(x), name=n) for n in 'fg')\n(f if r else g)(np.ones(3))",
        "g on rank 0",
        "f on rank 1",
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_different_programs_are_an_error_that_names_the_difference(name: str) -> None:
    program, *expected = DIFFERENT[name]
    done = on_ranks(2, "-c", PREAMBLE + program)
    assert done.returncode != 0
    assert "DistributedError" in done.stderr
    for words in expected:
        assert words in done.stderr


def test_what_may_differ() -> None:
    """Numbers, and everything without collectives; a rank may look at a function that others do not."""
    program = """
step = aj.function(lambda x: d.all_reduce(x * (r + 1.0) if r else x))
if r == 1:
    step.inspect(np.ones(2))
    aj.function(lambda x: x + 1.0)(np.ones(2))
assert float(step(np.ones(2))[0]) == 3.0
"""
    done = on_ranks(2, "-c", PREAMBLE + program)
    assert done.returncode == 0, done.stderr


def test_a_rank_that_does_not_call_the_function() -> None:
    program = """
import time
if r == 0:
    aj.function(lambda x: d.all_reduce(x), name="step")(np.ones(3))
else:
    time.sleep(60)
"""
    done = on_ranks(2, "-c", PREAMBLE + program, ADJIT_RANKS_TIMEOUT="2")
    assert done.returncode != 0
    assert "rank 0 has reached the first call of step, and rank 1 did not within 2 s" in done.stderr


@pytest.mark.parametrize("ending", ["sys.exit('no data')", "sys.exit(0)", "raise SystemExit(3)"])
def test_a_rank_that_ends_while_others_wait_for_it(ending: str) -> None:
    """Neither is an error that Python reports; MPI's own end waits for all ranks."""
    program = f"""
import sys
from adjit.codegen.shared import windows
step = aj.function(lambda x: d.all_reduce(x))
step(np.ones(3))
windows.table.least = 0  # whatever was measured
step(np.ones(3))
if r == 1:
    {ending}
step(np.ones(3))
"""
    done = on_ranks(2, "-c", PREAMBLE + program)
    assert done.returncode != 0
    assert "rank 0 waits for rank 1, which has ended; ending all ranks" in done.stderr


def test_a_rank_that_ends_first() -> None:
    """The last exchange of all is complete when a rank ends, even if others have not noticed it yet."""
    program = """
import time
from adjit.codegen.shared import windows
step = aj.function(lambda x: d.all_reduce(x))
step(np.ones(3))
windows.table.least = 0
time.sleep(0.5 * (1 - r))
assert float(step(np.ones(3))[0]) == 2.0
time.sleep(1.0 * (1 - r))
"""
    done = on_ranks(2, "-c", PREAMBLE + program)
    assert done.returncode == 0, done.stderr


TRAINING = """
import hashlib, os, sys, time
from pathlib import Path
import numpy as np
from adjit import distributed as d, nn
folder, resume = Path(sys.argv[1]), sys.argv[2] == "resume"
rng = np.random.default_rng(0)
x = rng.normal(size=(64, 4)).astype("f4")
nn.set_seed(0)
model = nn.Sequential([nn.Dense(8, activation="relu"), nn.Dropout(0.1), nn.Dense(1)])
trainer = nn.Trainer(model, "mse", "adam", distributed=True, shards=4)
path = folder / "checkpoint"
if resume and path.exists():
    trainer.restore(path, x[:1])
    print("resumed at", trainer.epoch, trainer.step, flush=True)
def stand_still(batch, logs):
    # rank 1 stops after step 7; rank 0 waits for it in native code
    if sys.argv[2] == "stop" and trainer.epoch == 1 and batch == 2:
        (folder / f"pid.{d.rank()}").write_text(str(os.getpid()))
        time.sleep(300 * d.rank())
callbacks = [nn.ModelCheckpoint(path, save_freq=3), nn.callbacks.LambdaCallback(on_batch_end=stand_still)]
trainer.fit(x, x[:, :1], batch_size=16, epochs=4, verbose=0, callbacks=callbacks)
weights = b"".join(a.tobytes() for a in (*model.get_weights(), *trainer.optimizer.get_weights()))
if d.rank() == 0:
    print("hash", hashlib.sha256(weights).hexdigest(), flush=True)
"""


def started(program: Path, folder: Path, count: int) -> tuple[subprocess.Popen[str], list[int]]:
    """A training on several ranks, and the ids of their processes; returns once they stand still."""
    line = command(count, str(program), str(folder), "stop")
    running = subprocess.Popen(line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    names = [folder / f"pid.{rank}" for rank in range(count)]
    while not all(path.exists() and path.read_text() for path in names):
        assert running.poll() is None, running.communicate()[1]
        assert time.monotonic() < end
        time.sleep(0.1)
    return running, [int(path.read_text()) for path in names]


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ended(running: subprocess.Popen[str], pids: list[int]) -> str:
    """Wait until the launcher and all ranks have ended, at most `LIMIT`; returns what they printed."""
    try:
        printed = "".join(running.communicate(timeout=LIMIT))
    except subprocess.TimeoutExpired:
        running.kill()
        raise
    end = time.monotonic() + LIMIT
    while any(map(is_running, pids)) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(map(is_running, pids))
    assert running.returncode != 0
    return printed


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc to see that processes have ended")
def test_a_killed_rank_ends_the_others_and_training_resumes_with_the_same_bits(tmp_path: Path) -> None:
    program, whole, broken = tmp_path / "train.py", tmp_path / "whole", tmp_path / "broken"
    program.write_text(TRAINING, encoding="utf-8")
    whole.mkdir()
    broken.mkdir()
    expected = on_ranks(2, str(program), str(whole), "all")
    assert expected.returncode == 0, expected.stderr
    running, pids = started(program, broken, 2)
    os.kill(pids[1], signal.SIGKILL)
    assert re.search(r"signal:? 9|killed|SIGKILL", ended(running, pids), re.IGNORECASE)
    resumed = on_ranks(2, str(program), str(broken), "resume")
    assert resumed.returncode == 0, resumed.stderr
    assert "resumed at 1 2" in resumed.stdout  # step 6 was the last one saved
    assert expected.stdout.strip() in resumed.stdout


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc to see that processes have ended")
def test_ctrl_c_ends_all_ranks(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(TRAINING, encoding="utf-8")
    running, pids = started(program, tmp_path, 2)
    running.send_signal(signal.SIGINT)
    ended(running, pids)
