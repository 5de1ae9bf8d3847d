"""Limits of the system: memory, open files, the disk, the home directory, and interrupts while a function is compiled.

A call raises or works; variables are as before when it raises; once the limit is gone, the same call works. Never an abort.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits are set and read the way Linux does it")

ALL = [*range(0, 1000, 20), 1500] if os.environ.get("ADJIT_FUZZ") else []  # megabytes: every step, by a switch

TRAINING = """
import faulthandler, os, resource, signal, sys, threading, time, warnings
faulthandler.enable()
import numpy as np, adjit as aj
warnings.simplefilter("ignore", aj.SlowCompilationWarning)  # the time depends on the machine

def address_space():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmSize")) * 1024

def limit(what, most):
    resource.setrlimit(what, (most, resource.getrlimit(what)[1]))

def unlimit(what):
    limit(what, resource.getrlimit(what)[1])

w = aj.Variable(np.full((300, 300), 0.01, "f4"), name="w")
count = aj.Variable(0, name="count")

@aj.function
def step(x):
    count.assign_add(1)
    with aj.GradientTape() as tape:
        y = x
        for i in aj.range(5):
            y = np.tanh(y @ w) + x
        loss = np.mean(y**2)
    w.assign_sub(0.1 * tape.gradient(loss, w))
    return loss

x = np.ones((3000, 300), "f4")

def attempt(*errors):
    # a step, or one of these errors and nothing changed
    before = w.numpy().copy(), int(count.numpy())
    try:
        step(x)
    except errors as error:
        limits = resource.getrlimit(resource.RLIMIT_AS)
        unlimit(resource.RLIMIT_AS)  # the comparison needs memory
        assert np.array_equal(w.numpy(), before[0]) and int(count.numpy()) == before[1], "a call that raised changed variables"
        resource.setrlimit(resource.RLIMIT_AS, limits)
        return type(error).__name__
    assert int(count.numpy()) == before[1] + 1
    return "done"
"""


def run(program: str, **environment: str) -> str:
    env = {**os.environ, **environment}
    done = subprocess.run([sys.executable, "-c", TRAINING + program], capture_output=True, text=True, timeout=180, check=False, env=env)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "warning" not in done.stderr.lower() or "ADJIT" in done.stderr, done.stderr
    return done.stdout


@pytest.mark.parametrize("megabytes", ALL or [10, 250, 450, 1500])
def test_too_little_memory_to_compile(megabytes: int) -> None:
    output = run(
        f"limit(resource.RLIMIT_AS, address_space() + {megabytes} * 1_000_000)\n"
        "first = attempt(MemoryError)\nunlimit(resource.RLIMIT_AS)\nprint(first, attempt())\n",
        ADJIT_CACHE="0",
    )
    assert output.split()[1] == "done"
    assert megabytes < 1500 or output.split()[0] == "done"


@pytest.mark.parametrize("megabytes", [0, 6, 60])
def test_too_little_memory_to_run(megabytes: int) -> None:
    """The step is already compiled by another call: arenas, results and stacks are still to be allocated."""
    output = run(
        "step(x[:10])\nstep.inspect(x)\n"
        f"limit(resource.RLIMIT_AS, address_space() + {megabytes} * 1_000_000)\n"
        "first = attempt(MemoryError)\nunlimit(resource.RLIMIT_AS)\nprint(first, attempt())\n"
    )
    assert output.split()[1] == "done"


EXHAUSTED = (
    "step(x[:10])\n"
    "held = []\n"
    "try:\n    while True:\n        held.append(os.open('/dev/null', os.O_RDONLY))\nexcept OSError:\n    pass\n"
    "first = attempt(OSError)\n"
    "for each in held:\n    os.close(each)\n"
    "print(first, attempt())\n"
)


def test_too_many_open_files() -> None:
    assert run(EXHAUSTED, ADJIT_CACHE="0").split() == ["done", "done"]


def test_too_many_open_files_after_loading_from_the_disk(tmp_path: Path) -> None:
    """The compiler is imported when a function must be compiled: that fails, changes no state, and works later."""
    cache = {"ADJIT_CACHE_DIR": str(tmp_path / "cache")}
    run("step(x[:10])\n", **cache)
    first, second = run(EXHAUSTED, **cache).split()
    assert first in ("done", "OSError")
    assert second == "done"


def test_a_full_disk(tmp_path: Path) -> None:
    """No file may grow: nothing is cached, and nothing that was half written stays."""
    output = run(
        "limit(resource.RLIMIT_FSIZE, 1000)\nprint(attempt())\nunlimit(resource.RLIMIT_FSIZE)\n", ADJIT_CACHE_DIR=str(tmp_path / "cache")
    )
    assert output.split() == ["done"]
    assert not list((tmp_path / "cache").glob("*"))


@pytest.mark.parametrize("home", ["missing", "a file", "read-only", "none"])
def test_homes_that_are_not_writable(tmp_path: Path, home: str) -> None:
    path = tmp_path / "home"
    if home == "a file":
        path.write_text("")
    elif home == "read-only":
        path.mkdir(mode=0o500)
    given = "" if home == "none" else str(path / "deep" if home == "missing" else path)
    assert run("print(attempt(), attempt())\n", HOME=given, XDG_CACHE_HOME="", ADJIT_CACHE_DIR="").split() == ["done", "done"]


def test_saving_weights_to_a_full_disk_keeps_the_old_file(tmp_path: Path) -> None:
    output = run(
        f"from adjit import nn\npath = {str(tmp_path / 'w.safetensors')!r}\n"
        "nn.save(path, {'w': w})\nold = open(path, 'rb').read()\nstep(x)\n"
        "limit(resource.RLIMIT_FSIZE, 10_000)\n"
        "try:\n    nn.save(path, {'w': w})\nexcept OSError as error:\n    print(type(error).__name__)\n"
        f"assert open(path, 'rb').read() == old and os.listdir({str(tmp_path)!r}) == ['w.safetensors']\n"
    )
    assert output.split() == ["OSError"]


def test_interrupts_while_compiling() -> None:
    """Ctrl-C at many moments of a first call, which traces, optimises and compiles: the next call works, with the same result."""
    output = run(
        """
def make(k):
    @aj.function
    def f(x):
        count.assign_add(1)
        with aj.GradientTape() as tape:
            tape.watch(x)
            y = x
            for i in aj.range(3):
                y = np.tanh(y * (1.0 + k)) + np.sort(x) @ np.ones((50, 50))
            z = np.sum(y**2) + np.sum(np.linalg.inv(y.T @ y + np.eye(50)))
        return tape.gradient(z, x)
    return f

a = np.random.default_rng(0).standard_normal((60, 50))
wanted = np.array(make(0)(a))
start = time.perf_counter()
make(0.5)(a)
whole = time.perf_counter() - start
outcomes = []
for k in range(6):
    f, before = make(0), int(count.numpy())
    f.clear_cache()
    timer = threading.Timer(whole * (k + 0.5) / 6, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        f(a)
        timer.join()
        time.sleep(0.01)
        outcomes.append("done")
    except KeyboardInterrupt:
        outcomes.append("interrupted")
        assert int(count.numpy()) in (before, before + 1)
    timer.join()
    assert np.array_equal(np.array(f(a)), wanted), k
print(*outcomes)
""",
        ADJIT_CACHE="0",
    )
    assert "interrupted" in output
