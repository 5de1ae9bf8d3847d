"""The functions of `ir.ops` by name, for the modules that ops are built on: operators of operands, arithmetic of sizes.

`ir.ops` fills it when it is imported.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

functions: Any = SimpleNamespace()
