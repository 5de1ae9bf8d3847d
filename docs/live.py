"""The live pages of the site, generated when it is built (a hook of MkDocs): an explorer page, and a network trained in the browser.

Both are written by adjit for the programs in `examples/`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
COMMANDS = {  # page: how it is written into the folder
    "explore.html": ["-m", "adjit.explore", "--no-open", "--output", "{folder}/explore.html", f"{EXAMPLES / 'train_mlp.py'}"],
    "moons.html": [f"{EXAMPLES / 'export_moons.py'}", "--output", "{folder}"],
}


def pages() -> dict[str, str]:
    """Run the examples in separate processes, and return the pages by their path on the site."""
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS.values():
            words = [sys.executable, *(word.format(folder=folder) for word in command)]
            subprocess.run(words, check=True, capture_output=True, text=True)
        return {f"live/{name}": Path(folder, name).read_text(encoding="utf-8") for name in COMMANDS}


def on_files(files: Any, config: Any) -> Any:
    """Called by MkDocs with the files of the site."""
    from mkdocs.structure.files import File  # noqa: PLC0415 - the tests of this module do without

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files
