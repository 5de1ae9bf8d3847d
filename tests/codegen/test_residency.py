"""LLVM's code is released from memory while nothing is compiled, and paged in again for the next compilation."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import adjit as aj
from adjit.codegen.llvm import residency
from adjit.codegen.llvm import toolchain as llvm

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="pages are given back on Linux only")


def mappings() -> Iterator[tuple[int, int, str]]:
    """Start, stop and mode of the mappings of LLVM's file."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if line.endswith(f"/{llvm.LIBRARY}"):
            span, mode, *_ = line.split()
            start, stop = (int(end, 16) for end in span.split("-"))
            yield start, stop, mode


def resident_kilobytes() -> int:
    """Pages of LLVM's file that are in memory and unchanged."""
    total, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head, *rest = line.split()
        if not head.endswith(":"):
            inside = line.endswith(f"/{llvm.LIBRARY}")
        elif inside and head in ("Rss:", "Anonymous:"):
            total += int(rest[0]) * (1 if head == "Rss:" else -1)
    return total


def test_only_segments_that_are_never_written() -> None:
    llvm.host()
    spans = residency._unwritten(llvm.LIBRARY)
    executable = [(start, stop) for start, stop, mode in mappings() if mode == "r-xp"]
    assert all(any(at <= start and stop <= at + size + mmap.PAGESIZE for at, size in spans) for start, stop in executable)
    writable = [(start, stop) for start, stop, mode in mappings() if "w" in mode]
    assert writable
    assert not any(at < stop and start < at + size for at, size in spans for start, stop in writable)


def test_a_page_that_was_changed_is_never_dropped() -> None:
    llvm.host()
    spans = residency._unwritten(llvm.LIBRARY)
    start = None
    for line in Path("/proc/self/smaps").read_text().splitlines():
        head, *rest = line.split()
        if not head.endswith(":"):
            start = int(head.split("-")[0], 16)
        elif head == "Anonymous:" and start is not None and any(at <= start < at + size for at, size in spans):
            assert rest[0] == "0"


def test_code_is_released_and_paged_in_again() -> None:
    x = np.arange(5.0)
    aj.function(lambda x: np.exp(x) * 3.0)(x)
    residency.give_back(llvm.LIBRARY, always=True)
    assert resident_kilobytes() < 2_000
    np.testing.assert_allclose(aj.function(lambda x: np.exp(x) * 4.0)(x), np.exp(x) * 4.0)


def test_a_program_that_compiles_all_the_time_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(residency, "_unwritten", lambda library: asked.append(library) or [])
    monkeypatch.setattr(residency, "_last", 0.0)
    residency.give_back(llvm.LIBRARY)
    residency.give_back(llvm.LIBRARY)
    assert len(asked) == 1


def test_a_library_that_is_not_loaded_and_a_file_of_another_kind(tmp_path: Path) -> None:
    assert residency._unwritten("libnothing.so") == []
    other = tmp_path / "other.so"
    other.write_bytes(b"\xcf\xfa\xed\xfe" + bytes(100))
    assert residency._segments(str(other)) == []
