"""Lines of LLVM text with a mark of the user's line: `debug_lines` turns the marks into debug metadata."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex, overload

from adjit.ir.location import Location
from adjit.ir.locks import new_lock

_lock = new_lock()
_numbers: dict[Location, int] = {}  # of the marks; they are not part of the final text
locations: list[Location] = []


def _number(location: Location) -> int:
    with _lock:
        if location not in _numbers:
            _numbers[location] = len(locations)
            locations.append(location)
        return _numbers[location]


class Marked(list[str]):
    """Lines of LLVM text that are marked with the current location as they are added. Labels and plain jumps are left as they are."""

    location: Location | None = None

    def _marked(self, text: str) -> str:
        if self.location is None or not text:
            return text
        mark = f" ;@{_number(self.location)}"
        lines = text.split("\n")
        return "\n".join(line if not line or line.endswith(":") or line.startswith("br label ") else line + mark for line in lines)

    def append(self, line: str) -> None:
        super().append(self._marked(line))

    def extend(self, lines: Iterable[str]) -> None:
        super().extend(map(self._marked, lines))

    def __iadd__(self, lines: Iterable[str]) -> Marked:  # type: ignore[override,misc]
        self.extend(lines)
        return self

    @overload
    def __setitem__(self, at: SupportsIndex, line: str) -> None: ...
    @overload
    def __setitem__(self, at: slice, line: Iterable[str]) -> None: ...
    def __setitem__(self, at: SupportsIndex | slice, line: str | Iterable[str]) -> None:
        if isinstance(at, slice):
            super().__setitem__(at, map(self._marked, line))
        else:
            assert isinstance(line, str)
            super().__setitem__(at, self._marked(line))
