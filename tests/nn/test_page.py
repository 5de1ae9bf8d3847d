"""The examples of docs/nn.md, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "nn.md"


def test_the_examples_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a line says what it prints, it prints that."""
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    scope: dict[str, object] = {}
    for block in blocks:
        exec(compile(block.replace("/tmp/", f"{tmp_path}/"), str(PAGE), "exec"), scope)
    printed = capsys.readouterr().out
    promised = re.findall(r"print\(.*\)  # (\(.*|\[.*)", "\n".join(blocks))
    assert promised
    assert [text for text in promised if text not in printed] == []
