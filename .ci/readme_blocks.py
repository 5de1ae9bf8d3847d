"""Run the Python examples of a Markdown file, from the top to the bottom, as a reader would paste them.

    python .ci/readme_blocks.py README.md

Blocks fenced as ```python share one namespace. A block whose fence says ```python no-run is shown to the reader only. Each block is written
to a file first, because adjit reads the source of the functions that it transforms. The first failing block ends the run.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

FENCE = re.compile(r"^```python[ \t]*(?P<options>[^\n]*)\n(?P<code>.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)


def main(document: Path) -> int:
    text = document.read_text(encoding="utf-8")
    namespace: dict[str, object] = {"__name__": "__main__"}
    blocks = [match for match in FENCE.finditer(text) if "no-run" not in match["options"].split()]
    with tempfile.TemporaryDirectory() as folder:
        for match in blocks:
            line = text.count("\n", 0, match.start("code"))
            print(f"--- {document.name}:{line + 1}", flush=True)
            path = Path(folder, f"{document.stem}_line_{line + 1}.py")
            path.write_text("\n" * line + match["code"], encoding="utf-8")  # so that line numbers are those of the document
            start = time.perf_counter()
            exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
            print(f"--- ok in {time.perf_counter() - start:.2f} s", flush=True)
    print(f"{document.name}: {len(blocks)} python blocks ran")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
