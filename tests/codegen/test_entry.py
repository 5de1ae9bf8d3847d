"""When calls go through Python, with the same results: before the native entry is compiled, and if this Python is unknown to it."""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.entry import entry

PROGRAM = """
import sys
from collections import namedtuple
import numpy as np
import adjit as aj
from adjit.codegen.entry import entry

Version = namedtuple("Version", "major minor micro releaselevel serial")
sys.version_info = Version(*{version})
assert not entry.available()
W = aj.Variable(np.ones((3, 1)))

@aj.function
def step(x, y):
    with aj.GradientTape() as tape:
        loss = np.mean((x @ W - y) ** 2)
    W.assign_sub(0.1 * tape.gradient(loss, W))
    return loss

x, y = np.eye(3), np.zeros((3, 1))
losses = [float(step(x, y)) for _ in range(50)]
np.testing.assert_allclose(losses, [(14 / 15) ** (2 * k) for k in range(50)], rtol=1e-12)
np.testing.assert_allclose(W.numpy(), np.full((3, 1), (14 / 15) ** 50), rtol=1e-12)
assert step.trace_count == 1
"""


@pytest.mark.parametrize("version", [(3, 15, 0, "final", 0), (3, 10, 0, "final", 0), (4, 0, 0, "final", 0)], ids=str)
@pytest.mark.one_size("counts traces")
def test_an_unknown_python_calls_through_python(version: tuple[object, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(version=version)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


COLD = """
import sys
import numpy as np
import adjit as aj
from adjit.codegen.entry import entry

W = aj.Variable(np.zeros(()))

@aj.function
def count(x):
    W.assign_add(1.0)
    return W * x

plain = type(count)
assert float(count(np.ones(()))) == 1 and type(count) is plain
assert entry.is_ready() == (sys.argv[1] == "warm") and not entry.begin.is_made()
calls = 1
if sys.argv[1] == "exit":
    count(np.ones(()))
    sys.exit(0 if entry.begin.is_made() else 1)
while type(count) is plain:
    calls += 1
    assert float(count(np.ones(()))) == calls
for _ in range(100):
    calls += 1
    assert float(count(np.ones(()))) == calls
assert count._shortcut._routes[0][1].was_used()
"""


@pytest.mark.skipif(not entry.available(), reason="calls go through Python")
def test_the_entry_is_compiled_while_later_calls_go_through_python(tmp_path: Path) -> None:
    """The second call starts it, and the process may end meanwhile; with the disk cache, the entry is there at the first call."""
    for how, folder in (("exit", "a"), ("cold", "b")):
        env = {**os.environ, "ADJIT_CACHE_DIR": str(tmp_path / folder)}
        done = subprocess.run([sys.executable, "-c", COLD, how], capture_output=True, text=True, timeout=300, env=env)
        assert done.returncode == 0, done.stderr
    warm = COLD.replace("and type(count) is plain", "and type(count) is not plain")
    done = subprocess.run([sys.executable, "-c", warm, "warm"], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr


FORKED = """
import os
import numpy as np
import adjit as aj
from adjit.codegen.entry import entry

f = aj.function(lambda x: 2.0 * x)
f(np.ones(3)), f(np.ones(3))
assert entry.begin.is_made()
child = os.fork()
if child == 0:
    for _ in range(3):
        assert f(np.ones(3)).numpy().tolist() == [2, 2, 2]
    os._exit(0 if entry.is_ready() and type(f).__call__ is f._shortcut._entry.call else 1)
assert os.waitpid(child, 0)[1] == 0
for _ in range(3):
    f(np.ones(3))
assert type(f).__call__ is f._shortcut._entry.call
"""


@pytest.mark.skipif(not hasattr(os, "fork") or not entry.available(), reason="no forks, or calls go through Python")
def test_a_fork_waits_for_the_entry(tmp_path: Path) -> None:
    env = {**os.environ, "ADJIT_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not entry.available(), reason="calls go through Python")
@pytest.mark.one_size("counts references to the types of one size")
def test_results_own_their_types_and_calls_give_the_routes_back() -> None:
    double = aj.function(lambda x: (2.0 * x, -x))
    x = np.ones(3)
    double(x)
    type_ = double(x)[0].type
    of_type = sum(result.type is type_ for result in double(x))  # results of one type may share it
    routes = [each for each in gc.get_objects() if isinstance(each, entry._Installed) and any(type_ in r._kept[3] for r in each.routes)]

    def counts() -> list[int]:
        gc.collect()  # others refer to the dtype as well
        return [sys.getrefcount(each) for each in (x.dtype, type_, *routes)]

    before = counts()
    held = [double(x) for _ in range(100)]
    is_immortal = before[0] >= 3 << 30  # from Python 3.12 on, those of NumPy's dtypes that are static objects are not counted
    assert counts() == [before[0] + (0 if is_immortal else 200), before[1] + 100 * of_type, *before[2:]]
    held.clear()
    assert counts() == before


@pytest.mark.skipif(not entry.available(), reason="calls go through Python")
def test_the_definition_of_an_entry_outlives_it() -> None:
    """Python reads it while it deallocates the entry, which may be after the collector has cleared all that the entry refers to."""
    double = aj.function(lambda x: 2.0 * x)
    double(np.ones(3))
    definition = ctypes.c_void_p.from_address(id(type(double).__call__) + 16).value
    assert definition is not None
    before = ctypes.string_at(definition, ctypes.sizeof(entry._MethodDefinition))
    del double
    gc.collect()
    reused = [(ctypes.c_int64 * 4)(-1, -1, -1, -1) for _ in range(20_000)]  # memory of the same size
    assert ctypes.string_at(definition, ctypes.sizeof(entry._MethodDefinition)) == before
    del reused
