"""The reference pages of the documentation list every public name."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import adjit as aj

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_public_name_has_an_entry(reference: Any) -> None:
    text = "\n".join(page for _, page in reference.pages())
    listed = re.findall(r"^### (\S+) \{", text, re.MULTILINE)
    assert len(listed) == len(set(listed))
    expected = [f"aj.{n}" for n in aj.__all__ if callable(v := getattr(aj, n)) and v.__module__.startswith("adjit")]
    assert set(expected) <= set(listed)
    assert {"aj.nn.Dense", "aj.nn.losses.Huber", "aj.random.normal", "aj.linalg.solve"} <= set(listed)


def test_every_group_of_names_is_on_a_page(reference: Any) -> None:
    listed = {part for _, _, parts in reference.PAGES.values() for part in parts}
    assert set(reference.groups()) - listed == {"dtypes and constants"}


def test_examples_become_blocks(reference: Any) -> None:
    page = dict(reference.pages())["reference/functions.md"]
    assert "```pycon\n>>> grad(lambda x: x * x)(3.0)\nTensor(6., f64[])\n```" in page
    assert "aj.grad(fn, argnums=0" in page
    assert page.count("```") % 2 == 0


def test_methods_of_base_classes_are_listed(reference: Any) -> None:
    page = dict(reference.pages())["reference/functions.md"]
    entry = page.partition("### aj.Function {")[2].partition("\n### ")[0]
    for method in ("inspect", "profile", "source", "explore", "export", "address", "clear_cache"):
        assert entry.count(f"- `.{method}(") == 1


def test_the_navigation_names_all_pages(reference: Any) -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")] + [path for path, _ in reference.pages()]
    assert [page for page in pages if f"- {page}\n" not in nav] == []
