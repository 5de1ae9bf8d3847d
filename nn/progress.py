"""A progress bar for an epoch: tqdm's if it is installed, in notebooks as a widget; a plain one otherwise.

Only where somebody can watch it, a terminal or a notebook: a pipe, a file or a log has a line for each epoch.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any

__all__ = ["Progress", "words"]

WIDTH = 24
INTERVAL = 0.1  # seconds between two updates of the bar


def words(logs: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in logs.items())


def is_watched() -> bool:
    """Whether output appears before somebody's eyes: on a terminal, or below the cell of a notebook."""
    return sys.stdout.isatty() or type(sys.stdout).__module__.partition(".")[0] == "ipykernel"


def tqdm_bar(**options: Any) -> Any:
    """A bar of tqdm: a widget in notebooks that have ipywidgets, text elsewhere; None if tqdm is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tqdm's advice to install ipywidgets
        try:
            from tqdm.auto import tqdm  # noqa: PLC0415 - optional
        except ImportError:
            return None
        return tqdm(**options)


class Progress:
    """The bar of one epoch. `verbose`: 0 nothing, 1 (also None) a bar where it can be watched, 2 a line at the end."""

    def __init__(self, title: str, total: int | None, verbose: int | None, first: int = 0) -> None:
        self.verbose = 1 if verbose is None else int(verbose)
        if self.verbose == 1 and not is_watched():
            self.verbose = 2
        self.title, self.total = title, total
        self.count, self.started, self.drawn = first, time.perf_counter(), 0.0
        self.bar: Any = None
        if self.verbose == 1:
            self.bar = tqdm_bar(total=total, initial=first, desc=title, file=sys.stdout, leave=False)

    def step(self, logs: Mapping[str, float]) -> None:
        self.count += 1
        if self.verbose != 1:
            return
        now = time.perf_counter()
        if self.bar is not None:
            self.bar.update(1)
        if now - self.drawn < INTERVAL:
            return
        self.drawn = now
        if self.bar is not None:
            self.bar.set_postfix_str(words(logs), refresh=False)
        else:
            sys.stdout.write(f"\r{self._line()}  {words(logs)}\x1b[K")
            sys.stdout.flush()

    def _line(self) -> str:
        if self.total is None:
            return f"{self.title}  {self.count} steps"
        filled = WIDTH * self.count // max(1, self.total)
        return f"{self.title}  [{'=' * filled}{'.' * (WIDTH - filled)}] {self.count}/{self.total}"

    def end(self, logs: Mapping[str, float]) -> None:
        if self.bar is not None:
            self.bar.close()
        if self.verbose:
            seconds = time.perf_counter() - self.started
            start = "\r\x1b[K" if self.verbose == 1 and self.bar is None else ""
            print(f"{start}{self.title}  {self.count} steps in {seconds:.2f} s  {words(logs)}", flush=True)
