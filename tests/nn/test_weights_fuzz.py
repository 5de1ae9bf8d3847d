"""Damaged and hostile files of weights: each is read, or rejected with a WeightsError that gives the reason.

ADJIT_FUZZ=50000 tries so many files rather than a thousand; ADJIT_SEED chooses others.
"""

from __future__ import annotations

import json
import os
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjit import Variable, nn
from adjit.nn import optimizers

FILES = int(os.environ.get("ADJIT_FUZZ", "1000"))
SEED = int(os.environ.get("ADJIT_SEED", "0"))
HUGE = [0, 1, -1, 2**31, 2**32, 2**62, 2**63, 2**64, 10**30, -(2**63), 1.5, 1e308, True, None, "4", [], {}, "\ud800", "\x00"]
NAMES = ["a", "b", "__metadata__", "", "\x1b[31m", "ü" * 300, "\ud800"]


def file_of(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def described(random: random.Random) -> tuple[dict[str, Any], bytes]:
    """A header that is right, and its data."""
    header: dict[str, Any] = {"__metadata__": {"epoch": "3"}}
    at = 0
    for k in range(random.randrange(4)):
        shape = [random.randrange(4) for _ in range(random.randrange(3))]
        size = int(np.prod(shape)) * 4
        header[f"t{k}"] = {"dtype": random.choice(["F32", "I32", "U32"]), "shape": shape, "data_offsets": [at, at + size]}
        at += size
    return header, random.randbytes(at)


def change_bytes(random: random.Random, content: bytes) -> bytes:
    out = bytearray(content)
    for _ in range(random.randrange(1, 4)):
        at = random.randrange(min(len(out), random.choice([12, 64, 1 << 20])))
        out[at : at + random.randrange(2)] = random.randbytes(random.randrange(3))
        if not out:
            break
    return bytes(out)


def change_value(random: random.Random, value: Any) -> Any:
    """One place of a structure changed: a number, a name, a container."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(list(value))
        out = {k: change_value(random, v) if k == key else v for k, v in value.items()}
        if random.random() < 0.1:
            out[random.choice(NAMES)] = out.pop(key)
        return out
    if isinstance(value, list) and value and random.random() < 0.85:
        at = random.randrange(len(value))
        return [*value[:at], change_value(random, value[at]), *value[at + 1 :]]
    return random.choice(HUGE)


def mutated(random: random.Random) -> bytes:
    header, data = described(random)
    how = random.randrange(4)
    if how == 0:
        return change_bytes(random, file_of(header, data))
    if how == 1:
        return file_of(change_value(random, change_value(random, header)), data)
    if how == 2:
        return file_of(header, data[: random.randrange(len(data) + 1)] + random.randbytes(random.randrange(3)))
    return file_of(header, data, random.choice([0, 1, 7, 8, 2**31, 2**63, 2**64 - 1]))


def test_mutated_files(tmp_path: Path) -> None:
    path, read = tmp_path / "m", 0
    for k in range(FILES):
        content = mutated(random.Random(f"{SEED} {k}"))
        path.write_bytes(content)
        try:
            arrays = nn.read_arrays(path)
            assert sum(a.nbytes for a in arrays.values()) <= len(content), (SEED, k)
            nn.read_metadata(path)
            read += 1
        except nn.WeightsError:
            continue
        except Exception as error:
            raise AssertionError(f"seed {SEED}, file {k}: {error!r}") from error
    assert FILES // 100 < read < FILES // 2


def entry(shape: list[Any], first: int, last: int, dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [first, last]}


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "overlap": (lambda: file_of({f"t{k}": entry([2], 0, 8) for k in range(9)}, b"\0" * 8), "overlaps"),
    "gap": (lambda: file_of({"a": entry([1], 4, 8)}, b"\0" * 8), "gap"),
    "rest": (lambda: file_of({"a": entry([1], 0, 4)}, b"\0" * 8), "take 4 bytes, but 8 are there"),
    "huge and empty": (lambda: file_of({"a": entry([0, 2**62, 2**62], 0, 0)}), "no array can have"),
    "many axes": (lambda: file_of({"a": entry([1] * 65, 0, 4)}, b"\0" * 4), "cannot read"),
    "nested": (lambda: file_of(b"[" * 200_000), "nested too deeply"),
    "nested objects": (lambda: file_of(b'{"a":' * 100_000), "nested too deeply"),
    "digits": (lambda: file_of(b'{"a": ' + b"9" * 5000 + b"}"), "not JSON"),
    "float": (lambda: file_of({"a": entry([1.0], 0, 4)}, b"\0" * 4), "cannot read"),
    "infinite": (lambda: file_of(b'{"a": {"dtype": "F32", "shape": [1e999], "data_offsets": [0, 4]}}', b"\0" * 4), "cannot read"),
    "metadata": (lambda: file_of({"__metadata__": {"epoch": 3}}), "metadata must be texts"),
    "metadata list": (lambda: file_of({"__metadata__": [1]}), "metadata must be texts"),
    "twice": (lambda: file_of(b'{"a": 1, "a": 2}'), "twice"),
    "boolean": (lambda: file_of({"a": entry([2], 0, 2, "BOOL")}, b"\1\2"), "not booleans"),
    "no text": (lambda: file_of(b"\xff\xfe{}"), "not JSON"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(tmp_path: Path, name: str) -> None:
    make, reason = REFUSED[name]
    (tmp_path / "m").write_bytes(make())
    with pytest.raises(nn.WeightsError, match=reason):
        nn.read_arrays(tmp_path / "m")


def test_nothing_is_allocated_for_what_is_refused(tmp_path: Path) -> None:
    """A megabyte of data claimed by a thousand tensors, and a tensor that does not fit: no memory is allocated for either."""
    data = b"\0" * (1 << 20)
    (tmp_path / "m").write_bytes(file_of({f"t{k}": entry([1 << 18], 0, 1 << 20) for k in range(1000)}, data))
    (tmp_path / "other").write_bytes(file_of({"a": entry([1 << 18], 0, 1 << 20)}, data))
    tracemalloc.start()
    try:
        with pytest.raises(nn.WeightsError, match="overlaps"):
            nn.read_arrays(tmp_path / "m")
        with pytest.raises(nn.WeightsError, match="does not fit"):
            nn.load(tmp_path / "other", {"a": Variable(np.zeros(3, np.float32))})
        assert tracemalloc.get_traced_memory()[1] < 1_500_000
    finally:
        tracemalloc.stop()


def test_loading_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt between two assignments leaves both variables unchanged."""
    target = {"a": Variable(np.zeros(2)), "b": Variable(np.zeros(2))}
    nn.write_arrays(tmp_path / "m", {"a": np.ones(2), "b": np.ones(2)})
    assign, calls = Variable.assign, []

    def interrupted(self: Variable, value: Any) -> Variable:
        calls.append(value)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return assign(self, value)

    monkeypatch.setattr(Variable, "assign", interrupted)
    with pytest.raises(KeyboardInterrupt):
        nn.load(tmp_path / "m", target)
    assert [v.numpy().tolist() for v in target.values()] == [[0.0, 0.0], [0.0, 0.0]]


def test_an_epoch_that_is_not_a_number(tmp_path: Path) -> None:
    nn.set_seed(0)
    model = nn.Sequential([nn.Dense(1)])
    trainer = nn.Trainer(model, "mse", optimizers.SGD(0.1))
    model(np.ones((1, 2), np.float32))
    trainer.optimizer.build(model.trainable_variables)
    nn.save(tmp_path / "m", {"model": model, "optimizer": trainer.optimizer}, {"epoch": "²"})
    with pytest.raises(nn.WeightsError, match="epoch"):
        trainer.restore(tmp_path / "m")
