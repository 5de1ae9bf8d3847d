"""The scanner of IR text: a position, patterns matched at it, and errors that show the span.

Owns the tokens (names, numbers, strings, types), not the grammar. Spaces are skipped, line ends are not.
"""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager
from typing import NoReturn

from .errors import ParseError
from .expr import Symbol
from .sizes import LEAST, Symbols
from .types import DTYPES, StackType, TensorType

# `%y_pred`, `%w.bar.1`, `%12`; letters of any alphabet, as in Python's names.
NAME = re.compile(r"[^\W\d]\w*(?:\.\w+)*")
UNNAMED = re.compile(r"[0-9]+")
_REAL = r"-?(?:inf\b|nan\b(?:\(0x[0-9a-f]+\))?|[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?)"
NUMBER = re.compile(rf"{_REAL}|true\b|false\b|\({_REAL},\s*{_REAL}\)")
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
FILE = re.compile(r'(?![0-9]+(?::|\s|$))[^\s":#]+')  # a file name that needs no quotes in a location

_WORD = re.compile(r"[^\W\d]\w*")
_TYPE = re.compile(r"([a-z]+[0-9]*)\[([0-9]*(?:, ?[0-9]+)*)\]")
_TYPE_HEAD = re.compile(r"[a-z]+[0-9]*\[")
_SPACE_STARTS = frozenset(" \t#")
_SPACES = re.compile(r"[ \t]*(?:#[^\n]*)?")
_PIECE = re.compile(r"[%@]?[\w.]+|\S")
_NOT_TEXT = re.compile("[\0\ud800-\udfff]")
_LINES = re.compile(r"(?:[ \t\r]*(?:#[^\n]*)?\n)*[ \t]*(?:#[^\n]*\Z)?")


MAX_DIGITS = 19  # of an integer that fits 64 bits
MAX_DEPTH = 50  # nesting of regions, lists and types


def is_text(text: str) -> bool:
    """Whether the text can be written to a file, and used as a file name."""
    return _NOT_TEXT.search(text) is None


class _Deeper:
    def __init__(self, scanner: Scanner) -> None:
        self.scanner = scanner

    def __enter__(self) -> None:
        self.scanner.depth += 1
        if self.scanner.depth > MAX_DEPTH:
            self.scanner.fail_here(f"nested more than {MAX_DEPTH} deep")

    def __exit__(self, *error: object) -> None:
        self.scanner.depth -= 1


class Scanner:
    """A text and a position in it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.start = 0  # the start of the last token
        self.depth = 0
        self.symbols = Symbols()
        self._types: dict[str, TensorType] = {}
        if not is_text(text):
            raise ParseError("the text contains a null byte or half of a surrogate pair")

    # ---- tokens

    def skip_spaces(self) -> None:
        if self.text[self.at : self.at + 1] in _SPACE_STARTS:
            found = _SPACES.match(self.text, self.at)
            assert found is not None
            self.at = found.end()

    def match(self, pattern: re.Pattern[str]) -> str | None:
        """Skip spaces, then return the text that `pattern` matches here."""
        self.skip_spaces()
        found = pattern.match(self.text, self.at)
        if found is None:
            return None
        self.start, self.at = self.at, found.end()
        return found.group()

    def accept(self, mark: str) -> bool:
        """Consume a punctuation mark, if it comes next."""
        self.skip_spaces()
        if not self.text.startswith(mark, self.at):
            return False
        self.start, self.at = self.at, self.at + len(mark)
        if mark == "," and self.line_end():
            self.next_line()
        return True

    def expect(self, mark: str) -> None:
        if not self.accept(mark):
            self.fail_here(f"expected '{mark}'")

    def word(self) -> str | None:
        return self.match(_WORD)

    def accept_word(self, word: str) -> bool:
        before = self.at
        if self.match(_WORD) == word:
            return True
        self.at = before
        return False

    def expect_word(self, word: str) -> None:
        if not self.accept_word(word):
            self.fail_here(f"expected '{word}'")

    def value_name(self) -> str:
        """The name after `%`."""
        self.expect("%")
        start = self.start
        name = self.match(NAME) or self.match(UNNAMED)
        if name is None or self.start != start + 1:
            self.fail("expected a name after '%'", start, start + 1)
        self.start = start
        return name

    def string(self) -> str | None:
        found = self.match(STRING)
        if found is None:
            return None
        try:
            text = str(json.loads(found))
        except ValueError:
            self.fail(f"{found} is not a string: it has an unknown escape")
        if not is_text(text):
            self.fail(f"{found} contains a null byte or half of a surrogate pair")
        return text

    def integer(self) -> int:
        found = self.match(UNNAMED)
        return self.whole(found) if found is not None else self.fail_here("expected a number")

    def whole(self, digits: str) -> int:
        """The integer value of the digits just read. Python itself refuses to convert thousands of digits."""
        if len(digits.lstrip("-")) > MAX_DIGITS:
            self.fail(f"a number of {len(digits)} digits does not fit into 64 bits")
        return int(digits)

    def deeper(self) -> AbstractContextManager[None]:
        """Guards nested syntax against a depth that exceeds Python's stack and readability."""
        return _Deeper(self)

    def type(self) -> TensorType:
        """`f32[128,784]`, `stack<f32[784]>`."""
        found = self.match(_TYPE)
        if found is None:
            if self.accept("stack<"):
                with self.deeper():
                    element = self.type()
                self.expect(">")
                return StackType(element)
            if self.symbols.table and self.match(_TYPE_HEAD) is not None:
                return self._symbolic_type()
            self.fail_here("expected a type like f32[128,784]")
        known = self._types.get(found)
        if known is None:
            name, _, dims = found[:-1].partition("[")
            if name not in DTYPES:
                self.fail(f"unknown dtype {name!r}; choose one of {', '.join(DTYPES)}", self.start, self.start + len(name))
            known = self._types[found] = TensorType(DTYPES[name], tuple(self.whole(n.strip()) for n in dims.split(",") if n))
        return known

    # ---- sizes

    def declare_symbols(self) -> None:
        """`B=64, T=12 in 6..31]`: the symbols of the function that follows."""
        self.symbols = Symbols()
        while not self.accept("]"):
            if self.symbols.table:
                self.expect(",")
            name = self.word()
            if name is None:
                self.fail_here("expected the name of a size")
            if name in self.symbols.table:
                self.fail(f"the size {name} is declared twice")
            self.expect("=")
            hint, low, high = self.integer(), LEAST, None
            if self.accept_word("in"):
                low = self.integer()
                self.expect("..")
                high = self.integer() if self.text[self.at : self.at + 1].isdigit() else None
            symbol = Symbol(name, hint, low, high)
            if symbol.low < 0 or symbol.hint < symbol.low or (symbol.high is not None and symbol.hint > symbol.high):
                self.fail(f"{symbol.hint} is not in the range of {name}, which is from {symbol.low} (or else {LEAST}) up")
            self.symbols.add(symbol)

    def _symbolic_type(self) -> TensorType:
        start = self.start
        name = self.text[start : self.at - 1]
        if name not in DTYPES:
            self.fail(f"unknown dtype {name!r}; choose one of {', '.join(DTYPES)}", start, start + len(name))
        sizes = [self.size()]
        while not self.accept("]"):
            self.expect(",")
            sizes.append(self.size())
        return TensorType(DTYPES[name], sizes)

    def size(self) -> int:
        """`64`, `B`, `2*B-1`, `(B+1)//2`: a sum of products of numbers, names and sums in parentheses."""
        total = -self._product() if self.accept("-") else self._product()
        while True:
            if self.accept("+"):
                total = total + self._product()
            elif self.accept("-"):
                total = total - self._product()
            else:
                return total

    def _product(self) -> int:
        out = self._factor()
        while True:
            if self.accept("*"):
                out = out * self._factor()
            elif self.accept("//"):
                divisor = self._factor()
                if divisor == 0:
                    self.fail("a size cannot be divided by 0")
                out = out // divisor
            else:
                return out

    def _factor(self) -> int:
        if self.accept("("):
            with self.deeper():
                inner = self.size()
            self.expect(")")
            return inner
        digits = self.match(UNNAMED)
        if digits is not None:
            return self.whole(digits)
        name = self.word()
        if name is None:
            self.fail_here("expected a size")
        if name not in self.symbols.table:
            self.fail(f"unknown size {name}; the head of the function declares sizes: func @f[{name}=64](...)")
        return self.symbols[name]

    # ---- lines

    def line_end(self) -> bool:
        """Whether nothing but a comment is left on this line."""
        self.skip_spaces()
        return self.at == len(self.text) or self.text[self.at] in "\r\n"

    def end_line(self) -> None:
        if not self.line_end():
            self.fail_here("expected the end of the line")
        self.next_line()

    def next_line(self) -> None:
        """Skip line ends, blank lines and comments."""
        found = _LINES.match(self.text, self.at)
        assert found is not None
        self.at = found.end()

    # ---- errors

    def fail_here(self, message: str) -> NoReturn:
        """Raise an error at the next token."""
        self.skip_spaces()
        found = _PIECE.match(self.text, self.at)
        if found is None:
            self.fail(f"{message}, found the end of the {'line' if self.at < len(self.text) else 'text'}", self.at, self.at)
        self.fail(f"{message}, found {found.group()!r}", self.at, found.end())

    def fail(self, message: str, start: int | None = None, end: int | None = None) -> NoReturn:
        """Raise an error at a span, by default the last token."""
        start = self.start if start is None else start
        end = self.at if end is None else end
        line = self.text.count("\n", 0, start) + 1
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", start)
        source = self.text[first:] if last < 0 else self.text[first:last]
        column = start - first
        shown = source.replace("\t", " ")
        carets = "^" * max(1, min(end - start, len(source) - column))
        raise ParseError(f"line {line}, column {column + 1}: {message}\n  {shown}\n  {' ' * column}{carets}")
