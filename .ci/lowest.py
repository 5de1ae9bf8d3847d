"""Print the lowest versions of the run-time dependencies that pyproject.toml claims, as pip installs them."""

from __future__ import annotations

import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"

for requirement in tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]:
    print(requirement.replace(">=", "=="))
