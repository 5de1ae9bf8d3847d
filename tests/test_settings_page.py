"""docs/settings.md lists every environment variable and every field of `config`, from the two tables in the code.

python tests/test_settings_page.py     writes the page
"""

from __future__ import annotations

import re
from pathlib import Path

from adjit.ir.environment import VARIABLES
from adjit.runtime.config import FIELDS, Config

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "settings.md"
PACKAGES = ("adjit", "ir", "tracer", "passes", "codegen", "runtime", "nn", "compat")


def page() -> str:
    fields = "\n".join(f"| `config.{name}` | {meaning} |" for name, meaning in FIELDS.items())
    variables = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in VARIABLES.items())
    return f"""# Settings

`adjit.config` holds the settings of the process. A misspelt name raises.

| field | meaning |
|---|---|
{fields}

Environment variables are read when adjit is imported, or when their value is first needed.

| variable | meaning |
|---|---|
{variables}
"""


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tests/test_settings_page.py"


def test_every_field_is_described() -> None:
    assert set(FIELDS) == set(Config.__slots__)


def test_every_variable_that_the_code_names_is_described() -> None:
    sources = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    named = {name for path in sources for name in re.findall(r"\bADJIT_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    assert named == set(VARIABLES)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
