"""Run notebooks with TensorFlow and with `adjit.tf`, and compare cell by cell whether they run and show the same numbers.

    python -m tests.tools.guides NOTEBOOK.ipynb ... --tensorflow PYTHON [--show]

PYTHON is an interpreter that has TensorFlow. Each notebook runs in a process of its own, twice with TensorFlow: outputs that differ between
those two runs (random numbers, times) are not compared. A cell counts as running if it raises exactly where TensorFlow raises. Magic lines
are left out, and libraries that are not installed (plots, say) are mocks, on both sides.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import linecache
import math
import os
import re
import subprocess
import sys
import tempfile
import traceback
import unittest.mock
from collections import Counter
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"(?<![\w:])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b(?:nan|inf|True|False|None)\b")
UNSTABLE = re.compile(r"0x[0-9a-f]+|/tmp/\S+|object at \S+")
OPTIONAL = ("IPython", "matplotlib", "pandas", "seaborn", "tensorflow_datasets", "tensorflow_probability", "PIL", "google")


class _Mocks(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that are not installed, as mocks: found last, so that installed ones win."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in OPTIONAL else None

    def create_module(self, spec: Any) -> Any:
        module = unittest.mock.MagicMock(name=spec.name)
        module.__spec__, module.__path__, module.__name__ = spec, [], spec.name
        return module

    def exec_module(self, module: Any) -> None: ...


class _Adjit(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Makes `import tensorflow` and `import keras` import adjit's modules, which are found first."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.split(".")[0] in ("tensorflow", "keras") else None

    def create_module(self, spec: Any) -> Any:
        from adjit import tf

        parts = spec.name.split(".")
        found: Any = tf.keras if parts[0] == "keras" else tf
        for part in parts[1:]:
            found = getattr(found, part)
        return found

    def exec_module(self, module: Any) -> None: ...


def cells(notebook: Path) -> list[str]:
    """The code of a notebook, without its licence, magic lines and shell commands."""
    found = []
    for cell in json.loads(notebook.read_text())["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code" or "Licensed under the Apache License" in text or text.lstrip().startswith("%%"):
            continue
        lines = [line for line in text.split("\n") if not re.match(r"\s*[!%]", line)]
        if any(line.strip() for line in lines):
            found.append("\n".join(lines))
    return found


def _run_cell(text: str, name: str, space: dict[str, Any]) -> dict[str, Any]:
    """Run one cell as a notebook does: the value of its last expression is shown."""
    linecache.cache[name] = (len(text), None, [line + "\n" for line in text.split("\n")], name)
    shown, error = io.StringIO(), None
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(io.StringIO()):
        try:
            tree = ast.parse(text, name)
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            if last is not None and text.rstrip().endswith(";"):
                tree.body.append(last)
                last = None
            exec(compile(tree, name, "exec"), space)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), name, "eval"), space)
                if value is not None:
                    print(repr(value))
        except Exception as raised:
            error = "".join(traceback.format_exception_only(raised))
    return {"text": text, "output": shown.getvalue(), "error": error}


def worker(notebook: Path, ours: bool) -> list[dict[str, Any]]:
    """The output of the cells of a notebook, and their exceptions."""
    sys.meta_path.append(_Mocks())
    if ours:
        sys.meta_path.insert(0, _Adjit())
    space: dict[str, Any] = {"__name__": "__main__", "display": print}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        rows = [_run_cell(text, f"<cell {number} of {notebook.stem}>", space) for number, text in enumerate(cells(notebook), 1)]
        os.chdir("/")
    return rows


def numbers(output: str) -> list[Any]:
    """All numbers and constants of an output, in order."""
    texts = NUMBER.findall(UNSTABLE.sub("", output))
    return [text if text in ("True", "False", "None") else float(text) for text in texts]


def close(a: Any, b: Any) -> bool:
    """Whether two numbers of outputs are the same up to rounding in float32."""
    if isinstance(a, str) or isinstance(b, str):
        return bool(a == b)
    return bool(math.isclose(a, b, rel_tol=2e-5, abs_tol=2e-6) or (math.isnan(a) and math.isnan(b)))


def same(a: str, b: str) -> bool:
    """Whether two outputs show the same numbers, or the same text if there are none."""
    left, right = numbers(a), numbers(b)
    if not left and not right:
        return UNSTABLE.sub("", a).split() == UNSTABLE.sub("", b).split()
    return len(left) == len(right) and all(map(close, left, right))


def _process(python: str, notebook: Path, ours: bool) -> list[dict[str, Any]]:
    command = [python, "-m", "tests.tools.guides", str(notebook), "--worker", "adjit" if ours else "tensorflow"]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
    done = subprocess.run(command, env=quiet, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{notebook}: {done.stderr[-2000:]}")
    rows: list[dict[str, Any]] = json.loads(done.stdout.rpartition("\x1e")[2])
    return rows


def compare(notebook: Path, tensorflow: str, kept: Path | None, show: bool) -> Counter[str]:
    """Counts of one notebook: cells, cells that run as in TensorFlow, stable outputs, outputs that are the same."""
    stored = kept / f"{notebook.stem}.json" if kept else None
    if stored and stored.exists():
        first, second = json.loads(stored.read_text())
    else:
        first, second = (_process(tensorflow, notebook, False) for _ in range(2))
        if stored:
            stored.write_text(json.dumps([first, second]))
    count: Counter[str] = Counter()
    for number, (a, b, own) in enumerate(zip(first, second, _process(sys.executable, notebook, True), strict=True), 1):
        runs = (a["error"] is None) == (own["error"] is None)
        stable = bool(a["output"].strip()) and same(a["output"], b["output"])
        agrees = stable and same(a["output"], own["output"])
        count.update(cells=1, run=runs, stable=stable, same=agrees)
        if show and not (runs and (agrees or not stable)):
            print(f"--- {notebook.stem} cell {number}\n{own['text']}\n--- TensorFlow: {a['error'] or ''}\n{a['output'][:1500]}")
            print(f"--- adjit: {own['error'] or ''}\n{own['output'][:1500]}\n")
    return count


def main() -> None:
    """Compare the notebooks of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("notebooks", type=Path, nargs="+")
    parser.add_argument("--tensorflow", metavar="PYTHON", help="an interpreter that has TensorFlow")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep what TensorFlow showed here, and read it the next time")
    parser.add_argument("--show", action="store_true", help="print the cells that differ")
    parser.add_argument("--worker", choices=("adjit", "tensorflow"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        rows = worker(args.notebooks[0], args.worker == "adjit")
        print("\x1e" + json.dumps(rows))
        return
    total: Counter[str] = Counter()
    for notebook in args.notebooks:
        count = compare(notebook.resolve(), args.tensorflow, args.keep, args.show)
        total.update(count)
        print(f"{notebook.stem}: {count['run']} of {count['cells']} cells, {count['same']} of {count['stable']} outputs", flush=True)
    print(f"all: {total['run']} of {total['cells']} cells, {total['same']} of {total['stable']} outputs")


if __name__ == "__main__":
    main()
