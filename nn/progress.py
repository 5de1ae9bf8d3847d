"""A progress bar for an epoch: tqdm's if it is installed, a plain one otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

__all__ = ["Progress", "words"]

WIDTH = 24
INTERVAL = 0.1  # seconds between two updates of the bar


def words(logs: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.4g}" for name, value in logs.items())


class Progress:
    """The bar of one epoch. `verbose`: 0 nothing, 1 a bar, 2 a line at the end; None: a bar on a terminal, a line elsewhere."""

    def __init__(self, title: str, total: int | None, verbose: int | None, first: int = 0) -> None:
        self.verbose = (1 if sys.stdout.isatty() else 2) if verbose is None else int(verbose)
        self.title, self.total = title, total
        self.count, self.started, self.drawn = first, time.perf_counter(), 0.0
        self.bar: Any = None
        if self.verbose == 1:
            try:
                from tqdm import tqdm  # noqa: PLC0415 - optional
            except ImportError:
                return
            self.bar = tqdm(total=total, initial=first, desc=title, file=sys.stdout, leave=False)

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
