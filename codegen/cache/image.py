"""Images: everything needed to run a compiled program, as bytes stored on disk.

A program that any process has compiled before is neither optimised nor translated to LLVM IR again. The object code itself is stored
separately, under keys of its own (`llvm.Object`).
"""

from __future__ import annotations

import marshal
import os
from collections.abc import Callable, Iterator, Sequence

from adjit.ir import errors
from adjit.ir.fingerprint import fingerprint
from adjit.ir.func import Func
from adjit.ir.location import Location
from adjit.ir.locks import once
from adjit.ir.records import NamedTuple
from adjit.ir.target import Target

from ..llvm import binding
from ..llvm import toolchain as llvm
from . import disk as cache

PACKAGES = ("ir", "passes", "codegen")  # packages whose source determines the code for a traced Func


class Failure(NamedTuple):
    """The error to raise when a kernel returns a code; the message is formatted with the details that the kernel stored."""

    error: type[errors.AdjitError]
    message: str
    location: Location | None


class Axis(NamedTuple):
    """A size that is known only at run time, and where a call finds it: an axis of a parameter."""

    name: str
    param: int
    axis: int


class Image(NamedTuple):
    """A compiled program. `exports` are the functions that Python calls, `imports` the external routines that it uses."""

    objects: tuple[llvm.Object, ...]
    exports: tuple[str, ...]
    imports: tuple[str, ...]
    failures: tuple[Failure, ...]
    arena_bytes: int
    buffer_count: int
    quick: int  # a call takes only microseconds while all symbols are at most this
    enterable: bool  # the native entry may call it
    memory: str = "0"  # the memory that a call needs, as an expression of the symbols
    exchanges: str = ""  # the collectives in the order in which native code runs them, which must be the same on all ranks
    symbols: tuple[Axis, ...] = ()  # sizes known only at run time, which a call passes after the buffers


def load(key: bytes | None) -> Image | None:
    """The image stored under a key, with all its object code; None if anything is missing."""
    path = cache.directory()
    if path is None or key is None:
        return None
    content = cache.load(path, key)
    if content is None:
        return None
    keys, exports, imports, failures, *rest = marshal.loads(content)
    objects = []
    for k in keys:
        code = cache.load(path, k)
        if code is None:
            return None
        objects.append(llvm.Object(k, code))
    known = tuple(Failure(error_named(error), message, location and Location(*location)) for error, message, location in failures)
    arena, count, quick, enterable, memory, exchanges, symbols = rest
    axes = tuple(Axis(*symbol) for symbol in symbols)
    return Image(tuple(objects), exports, imports, known, arena, count, quick, enterable, memory, exchanges, axes)


def store(key: bytes, image: Image) -> None:
    path = cache.directory()
    if path is None:
        return
    failures = [(name_of(f.error), f.message, f.location and tuple(f.location)) for f in image.failures]
    rest = *image[4:-1], [tuple(symbol) for symbol in image.symbols]
    cache.store(path, key, marshal.dumps(([o.key for o in image.objects], image.exports, image.imports, failures, *rest)))


def routine(name: str, text: Callable[[], str], target: Target, level: int) -> llvm.Object:
    """Object code of a built-in routine, which is generated only if it is not on disk."""
    key = _routine_key(name, target)
    if key is None:
        return llvm.assemble(text(), target, level)
    return llvm.Object(key, cache.cached(key, lambda: llvm.compiled(text(), target, level)))


def stored_routine(name: str, target: Target) -> llvm.Object | None:
    """The same if it is on disk, otherwise None."""
    path, key = cache.directory(), _routine_key(name, target)
    code = None if path is None or key is None else cache.load(path, key)
    return None if key is None or code is None else llvm.Object(key, code)


def _routine_key(name: str, target: Target) -> bytes | None:
    """None if adjit's source, on which the text depends, is not installed as files."""
    found = sources()
    return None if found is None else cache.key("routine", name, *target.settings, binding.versions(), found)


def key_of(func: Func, settings: Sequence[str], lines: bool = False) -> bytes | None:
    """The key of a traced Func's image, from everything that determines the code; None without a cache, source files or a fingerprint.

    `lines`: whether the code records the lines of all statements.
    """
    found = sources() if cache.directory() is not None else None
    known = fingerprint(func, lines) if found is not None else None
    if found is None or known is None:
        return None
    return cache.key("image with lines" if lines else "image", *settings, binding.versions(), found, known)


@once
def sources() -> str | None:
    """The version of adjit, from the sizes and modification times of its source files; None if it is not installed as files."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    try:
        return "\n".join(sorted(line for package in PACKAGES for line in _files(os.path.join(root, package))))
    except OSError:
        return None


def _files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir() and entry.name != "__pycache__":
                yield from _files(entry.path)
            elif entry.name.endswith(".py"):
                status = entry.stat()
                yield f"{entry.path} {status.st_size} {status.st_mtime_ns}"


def name_of(error: type[errors.AdjitError]) -> str:
    """The name of an error class, or of the built-in exception that `raised_as` combined with CheckError."""
    return error.__name__ if getattr(errors, error.__name__, None) is error else f"CheckError {error.__bases__[1].__name__}"


def error_named(name: str) -> type[errors.AdjitError]:
    check, _, built_in = name.partition(" ")
    found: type[errors.AdjitError] = errors.raised_as(built_in) if built_in else getattr(errors, check)
    return found
