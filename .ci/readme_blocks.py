"""Run the Python examples of a Markdown file, from top to bottom, as a reader would paste them, and compare what they print.

    python .ci/readme_blocks.py README.md

Blocks fenced as ```python share one namespace; a block fenced as ```python no-run is only shown, and one fenced as ```python needs=NAME is
run if that module is installed. Two things are compared:

- `print(...)  # text` at the start of a line: `text`, up to a semicolon, must be a line of the output, in this order;
- a block fenced as ```output: the block before it must print exactly this, where a line `...` stands for any number of lines.

Each block is run from a file `model.py` of its own, because adjit reads the source of the functions that it transforms: line numbers in
the output count from the top of the block. The first failure ends the run.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import sys
import tempfile
import time
import traceback
from pathlib import Path

FENCE = re.compile(r"^```(?P<kind>python|output)[ \t]*(?P<options>[^\n]*)\n(?P<text>.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
PRINTED = re.compile(r"^print\(.*\)[ ]+# (?P<text>[^;\n]+)", re.MULTILINE)


class Mismatch(Exception):
    """A block printed something else than the page says."""


def run(code: str, path: Path, namespace: dict[str, object]) -> str:
    """What the block prints."""
    path.parent.mkdir()
    path.write_text(code, encoding="utf-8")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(path), "exec"), namespace)
    return re.sub(rf"{re.escape(str(path.parents[1]))}/\d+/", "", out.getvalue())  # locations name the file alone


def check_comments(code: str, printed: str) -> int:
    """Find the text of every commented `print` among the lines printed, in order."""
    wanted = [match["text"].strip() for match in PRINTED.finditer(code)]
    lines = iter(printed.splitlines())
    for text in wanted:
        if not any(line.strip() == text for line in lines):
            raise Mismatch(f"the page says {text!r}; printed was\n{printed}")
    return len(wanted)


def check_output(wanted: str, printed: str) -> None:
    """Compare whole outputs, where `...` on a line of its own matches any lines."""
    parts = [re.escape(part.strip("\n")) for part in re.split(r"^[ ]*\.\.\.[ ]*$", wanted.strip("\n"), flags=re.MULTILINE)]
    if not re.fullmatch(r".*".join(parts), printed.strip("\n"), flags=re.DOTALL):
        raise Mismatch(f"the page says\n{wanted}\nprinted was\n{printed}")


def is_run(options: list[str]) -> bool:
    return "no-run" not in options and all(is_installed(o.removeprefix("needs=")) for o in options if o.startswith("needs="))


def is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of its package
        return False


def main(document: Path) -> int:
    text = document.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    blocks = compared = 0
    printed = ""
    with tempfile.TemporaryDirectory() as folder:
        for match in FENCE.finditer(text):
            where = f"{document.name}:{text.count(chr(10), 0, match.start('text')) + 1}"
            try:
                if match["kind"] == "output":
                    check_output(match["text"], printed)
                    compared += 1
                elif is_run(match["options"].split()):
                    start = time.perf_counter()
                    printed = run(match["text"], Path(folder, str(blocks), "model.py"), namespace)
                    compared += check_comments(match["text"], printed)
                    blocks += 1
                    print(f"{where}: ok in {time.perf_counter() - start:.2f} s", flush=True)
            except Exception as error:
                if not isinstance(error, Mismatch):
                    traceback.print_exc()
                print(f"{where}: FAILED: {error}")
                return 1
    print(f"{document.name}: {blocks} blocks ran, {compared} outputs are as the page says")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
