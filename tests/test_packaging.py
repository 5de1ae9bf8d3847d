"""The folders are sub-packages of `adjit` only: imported names, declared packages, and the modules that an import loads."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

import adjit

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("ir", "tracer", "passes", "codegen", "runtime", "nn", "compat")
PACKAGES = {"compat": "tf"}  # folders whose package has another name
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names of the modules that a fresh interpreter, started outside of the checkout, has loaded after `import adjit`."""
    code = "import json, sys, adjit; print(json.dumps(sorted(sys.modules)))"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    output = subprocess.run([sys.executable, "-c", code], cwd=elsewhere, capture_output=True, text=True, check=True).stdout
    return set(json.loads(output))


def test_import_leaves_no_bare_folder(imported: set[str]) -> None:
    assert "adjit" in imported
    assert imported.isdisjoint({*FOLDERS, "tests", "benchmarks", "examples"})


def test_import_does_not_load_llvm(imported: set[str]) -> None:
    assert not {name for name in imported if name.partition(".")[0] in {"llvmlite", "astunparse"}}


def test_version_is_that_of_the_metadata() -> None:
    assert adjit.__version__ == PROJECT["project"]["version"] == metadata.version("adjit")


def test_every_package_is_declared() -> None:
    """A forgotten sub-package works in a checkout and is missing from the wheel."""
    folders = {"adjit": "adjit"}
    for folder in FOLDERS:
        for init in (ROOT / folder).rglob("__init__.py"):
            folder = init.parent.relative_to(ROOT).as_posix()
            first, *rest = folder.split("/")
            folders[".".join(["adjit", PACKAGES.get(first, first), *rest])] = folder
    assert PROJECT["tool"]["setuptools"]["package-dir"] == folders
    assert sorted(PROJECT["tool"]["setuptools"]["packages"]) == sorted(folders)


def test_every_folder_of_a_sub_package_is_a_package() -> None:
    """A folder of modules without `__init__.py` is importable in a checkout (a namespace package) and not installed."""
    folders = {path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert not [str(folder) for folder in folders if not (folder / "__init__.py").exists()]


@pytest.mark.parametrize("folder", FOLDERS)
def test_symlink_leads_to_the_folder(folder: str) -> None:
    link = ROOT / "adjit" / PACKAGES.get(folder, folder)
    assert link.is_symlink()
    assert link.resolve() == ROOT / folder


@pytest.mark.parametrize("as_text", [False, True])
def test_a_checkout_without_symlinks_raises_with_a_remedy(tmp_path: Path, as_text: bool) -> None:
    """Where there are no symbolic links, unpacked archives lack them, and Git writes files with their targets."""
    (tmp_path / "adjit").mkdir()
    shutil.copy(ROOT / "adjit" / "__init__.py", tmp_path / "adjit")
    for folder in FOLDERS if as_text else ():
        (tmp_path / "adjit" / PACKAGES.get(folder, folder)).write_text(f"../{folder}")
    code = (
        "import sys; sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in repr(f).lower()]; "
        f"sys.path.insert(0, {str(tmp_path)!r}); import adjit"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode
    assert "has no symbolic links to its packages" in run.stderr
    assert "run `pip install -e .` in it" in run.stderr


def test_no_source_imports_a_bare_folder() -> None:
    """`import ir` resolves when the checkout is the current folder, and nowhere else."""
    bare = []
    for folder in (*FOLDERS, "adjit", "tests", "examples", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Import):
                    names = [alias.name for alias in node.names]
                elif isinstance(node, ast.ImportFrom) and node.level == 0:
                    names = [node.module or ""]
                else:
                    continue
                bare += [f"{path}:{node.lineno}: {name}" for name in names if name.partition(".")[0] in FOLDERS]
    assert not bare


def test_the_module_tune_is_the_function_too() -> None:
    code = "import adjit, adjit.tune; assert callable(adjit.tune); assert adjit.tune.__doc__"
    subprocess.run([sys.executable, "-c", code], check=True)
