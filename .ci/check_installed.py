"""Check an installed adjit: run with the interpreter of an environment that has adjit and its run-time dependencies and nothing else.

Every module must import, from the environment rather than from a checkout, and no sub-package may have become a top-level package.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

FOLDERS = ("ir", "tracer", "passes", "codegen", "runtime", "tests", "examples", "benchmarks")


def main() -> None:
    sys.path[:] = [entry for entry in sys.path if entry and Path(entry).resolve() != Path(__file__).resolve().parent]
    import adjit

    site = Path(sysconfig.get_path("purelib")).resolve()
    names = [module.name for module in pkgutil.walk_packages(adjit.__path__, "adjit.")]
    for name in names:
        importlib.import_module(name)
    ours = {name: module for name, module in sys.modules.items() if name.partition(".")[0] == "adjit"}
    strays = {name: module.__file__ for name, module in ours.items() if not from_site(module, site)}
    assert not strays, f"not from the environment: {strays}"

    bare = [folder for folder in FOLDERS if folder in sys.modules or importlib.util.find_spec(folder) is not None]
    assert not bare, f"importable as top-level packages: {bare}"
    tops = {Path(str(file)).parts[0] for file in metadata.files("adjit") or ()}
    assert tops == {"adjit", f"adjit-{adjit.__version__}.dist-info"}, f"the wheel installed {sorted(tops)}"
    assert (site / "adjit" / "py.typed").exists(), "py.typed is missing: type checkers would ignore our annotations"
    assert len(names) > len(FOLDERS), f"hardly a module was found: {names}"
    print(f"adjit {adjit.__version__}: {len(names)} modules imported from the environment, no bare sub-package")


def from_site(module: object, site: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and site in Path(file).resolve().parents


if __name__ == "__main__":
    main()
