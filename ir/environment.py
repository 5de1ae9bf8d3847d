"""What environment variables say."""

from __future__ import annotations

import os


def is_set(name: str) -> bool:
    """Whether a variable is there, and neither empty nor 0."""
    return os.environ.get(name, "") not in ("", "0")
