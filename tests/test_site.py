"""The first page of the site: its picture of benchmarks matches the table, and the examples that write its live pages exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def module(path: str) -> Any:
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def test_the_picture_shows_the_table() -> None:
    chart = module("benchmarks/chart.py")
    assert (ROOT / "docs/images/benchmarks.svg").read_text(encoding="utf-8") == chart.picture(), "python benchmarks/chart.py"
    assert len(chart.rows()) == len(chart.lines()) >= 10


def test_the_page_says_what_the_picture_shows() -> None:
    chart = module("benchmarks/chart.py")
    claims = "all are below one" in (ROOT / "docs/index.md").read_text(encoding="utf-8")
    assert claims == all(ratio < 1.0 for _, _, ratio in chart.rows())


def test_live_pages_are_written_by_the_examples() -> None:
    live = module("docs/live.py")
    linked = set(re.findall(r"live/([\w.]+)", (ROOT / "docs/index.md").read_text(encoding="utf-8")))
    assert linked == set(live.COMMANDS)
    for words in live.COMMANDS.values():
        assert all(Path(word).exists() for word in words if word.endswith(".py"))
