"""Files of weights: their contents, mismatches, and their state after a crash."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import adjit as aj
from adjit import nn
from tests.nn.reference import raises_with

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3), "b.c": np.array(7, np.int64), "empty": np.zeros((0, 4)),
    "flags": np.array([True, False]), "key": np.array([1, 2**32 - 1], np.uint32), "transposed": np.arange(6.0).reshape(2, 3).T,
}  # fmt: skip


def test_arrays_come_back(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    nn.write_arrays(path, ARRAYS, {"epoch": "3", "name": "grüße"})
    back = nn.read_arrays(path)
    assert list(back) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert back[name].dtype == array.dtype
        assert np.array_equal(back[name], array)
    assert nn.read_metadata(path) == {"epoch": "3", "name": "grüße"}
    assert os.listdir(tmp_path) == ["x.safetensors"]


def test_the_format_is_that_of_safetensors(tmp_path: Path) -> None:
    """Read by hand: eight bytes of length, JSON, then the data at the positions given there."""
    path = tmp_path / "x.safetensors"
    nn.write_arrays(path, {"a": ARRAYS["a"]}, {"k": "v"})
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    assert size % 8 == 0
    assert json.loads(data[8 : 8 + size]) == {"__metadata__": {"k": "v"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}
    assert np.frombuffer(data[8 + size :], "<f4").tolist() == [0, 1, 2, 3, 4, 5]


def model(units: int = 3, seed: int = 0) -> nn.Sequential:
    nn.set_seed(seed)
    out = nn.Sequential([nn.Dense(units), nn.BatchNorm(), nn.Dropout(0.5), nn.Dense(2)])
    out(np.ones((1, 4), np.float32))
    return out


def test_models_come_back(tmp_path: Path) -> None:
    a, b = model(seed=1), model(seed=2)
    a(np.random.default_rng(0).normal(size=(8, 4)), training=True)
    nn.save(tmp_path / "m", a)
    nn.load(tmp_path / "m", b)
    for x, y in zip(a.get_weights(), b.get_weights(), strict=True):
        assert np.array_equal(x, y)
    assert "layers.0.kernel" in nn.read_arrays(tmp_path / "m")


def test_mismatches_are_named_and_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "m"
    nn.save(path, model(3))
    other = model(4)
    before = other.get_weights()
    with raises_with(ValueError, "layers.0.kernel", "float32[4, 3] in the file", "f32[4,4] here"):
        nn.load(path, other)
    assert all(np.array_equal(a, b) for a, b in zip(before, other.get_weights(), strict=True))
    with raises_with(ValueError, "layers.4.bias", "is not in the file"):
        longer = model(3)
        longer.add(nn.Dense(1))
        longer(np.ones((1, 4), np.float32))
        nn.load(path, longer)
    nn.load(path, longer, strict=False)
    with raises_with(ValueError, "only in the file", "nothing is built yet", "call the model once"):
        nn.load(path, nn.Sequential([nn.Dense(3)]))
    with raises_with(ValueError, "float32", "f64"):
        nn.load(path, {"layers": [{"kernel": aj.Variable(np.zeros((4, 3)))}]}, strict=False)
    with raises_with(ValueError, "no variables to save"):
        nn.save(path, nn.Sequential([nn.Dense(3)]))


def test_broken_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    nn.save(path, model())
    data = path.read_bytes()
    for broken in (b"", data[:5], data[:40], data[:-1], b"\xff" * 100, (2).to_bytes(8, "little") + b"[]"):
        path.write_bytes(broken)
        with pytest.raises(nn.WeightsError):
            nn.read_arrays(path)
    entries = [
        3, {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}, {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
        {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}, {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]},
    ]  # fmt: skip
    for entry in entries:
        text = json.dumps({"a": entry}).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + b"\0" * 4)
        with pytest.raises(nn.WeightsError):
            nn.read_arrays(path)


def test_a_failure_while_saving_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m"
    nn.save(path, model(seed=1))
    old = path.read_bytes()

    def fail(handle: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk is full"):
        nn.save(path, model(seed=2))
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_kill_while_saving_leaves_the_old_file(tmp_path: Path, moment: str) -> None:
    """Killed after the data was written, or just before the rename; leftover files do not disturb the next save."""
    path = tmp_path / "m"
    nn.write_arrays(path, {"a": np.zeros(100_000)})
    code = (
        "import os, sys, time, numpy as np\nfrom adjit import nn\n"
        f"def stop(*_):\n    print('there', flush=True)\n    time.sleep(600)\nos.{moment} = stop\n"
        "nn.write_arrays(sys.argv[1], {'a': np.ones(100_000)})\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"there\n"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert (nn.read_arrays(path)["a"] == np.zeros(100_000)).all()
    nn.write_arrays(path, {"a": np.full(3, 2.0)})
    assert nn.read_arrays(path)["a"].tolist() == [2.0, 2.0, 2.0]


@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_files_have_the_mode_of_any_other(tmp_path: Path) -> None:
    path, other = tmp_path / "m", tmp_path / "other"
    other.write_bytes(b"")
    nn.write_arrays(path, ARRAYS)
    assert path.stat().st_mode == other.stat().st_mode
    path.chmod(0o640)
    nn.write_arrays(path, ARRAYS)
    assert path.stat().st_mode & 0o777 == 0o640
