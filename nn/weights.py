"""Saving and loading variables in safetensors files, which contain no executable code.

    save("run.safetensors", model)
    save("run.safetensors", {"model": model, "optimizer": optimizer}, metadata={"epoch": "3"})
    load("run.safetensors", {"model": model, "optimizer": optimizer})

A file is written to a temporary file and renamed over the old one once it is complete and on disk: a crash leaves the old file or the new.
Loading checks names, shapes and dtypes of everything before it assigns anything.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from adjit.ir.arrays import plain_array
from adjit.ir.errors import AdjitError
from adjit.ir.ops.base import Array
from adjit.ir.tracebacks import boundary
from adjit.runtime.tensor import Tensor, wrap
from adjit.runtime.variable import Variable

from .module import Module, walk

__all__ = ["save", "load", "write_arrays", "read_arrays", "read_metadata", "WeightsError"]

CODES = {
    "F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2",
    "U8": "|u1", "BOOL": "|b1", "F16": "<f2",
}  # fmt: skip
NAMES = {np.dtype(code): name for name, code in CODES.items()}
LONGEST_HEADER = 100_000_000  # bytes: the limit of the format
MAX_RANK = 64  # of NumPy arrays
SHOWN = 8  # mismatches listed in a message
LONGEST_TEXT = 200  # characters of a file quoted in a message


class WeightsError(AdjitError, ValueError):
    """A weights file that is broken, or does not match the variables that it is loaded into."""


# ---- files


def write_arrays(path: Any, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays to a safetensors file, atomically.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "a.safetensors")
    >>> aj.nn.write_arrays(path, {"w": np.arange(3.0)})
    >>> os.path.getsize(path) > 24
    True
    """
    header: dict[str, Any] = {"__metadata__": _checked_metadata(dict(metadata))} if metadata else {}
    prepared: list[Array] = []
    offset = 0
    for name, array in arrays.items():
        if name == "__metadata__" or array.dtype.newbyteorder("<") not in NAMES:
            raise WeightsError(f"{name!r} ({array.dtype}) cannot be written to {os.fspath(path)}: the format has no such name or dtype")
        data = np.ascontiguousarray(plain_array(array), array.dtype.newbyteorder("<"))
        header[name] = {"dtype": NAMES[data.dtype], "shape": list(array.shape), "data_offsets": [offset, offset + data.nbytes]}
        offset += data.nbytes
        prepared.append(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    folder = os.path.dirname(os.path.abspath(path))
    temporary = os.path.join(folder, f".{os.path.basename(os.fspath(path))}.{secrets.token_hex(6)}.part")
    try:
        with open(temporary, "xb") as file:
            file.write(len(text).to_bytes(8, "little"))
            file.write(text)
            for data in prepared:
                file.write(data.tobytes())
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(path):
            shutil.copymode(path, temporary)  # keep the permissions of the old file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make a rename durable, if the system allows folders to be opened."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


class StoredTensor(NamedTuple):
    """A tensor of a file, and the position of its bytes after the header."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    first: int
    last: int


class Header(NamedTuple):
    """The contents of a file, checked against the size of the file before any memory is allocated for data."""

    entries: dict[str, StoredTensor]
    metadata: dict[str, str]
    start: int  # of the data, in bytes


def read_header(file: BinaryIO, path: Any) -> Header:
    """Read the header of a file; raises WeightsError if it is invalid."""
    length = os.fstat(file.fileno()).st_size
    size = int.from_bytes(file.read(8), "little")
    if length < 8 or size > min(LONGEST_HEADER, length - 8):
        raise WeightsError(f"{os.fspath(path)} is not a safetensors file, or was cut off: it has {length} bytes")
    try:
        content = json.loads(file.read(size), object_pairs_hook=_without_duplicates)
    except RecursionError:
        raise WeightsError(f"{os.fspath(path)} is not a safetensors file: its header is nested too deeply") from None
    except ValueError as error:  # invalid syntax or encoding, or an integer with too many digits
        raise WeightsError(f"{os.fspath(path)} is not a safetensors file: its header is not JSON ({_brief(str(error))})") from None
    if not isinstance(content, dict):
        raise WeightsError(f"{os.fspath(path)} is not a safetensors file: its header is not a JSON object")
    try:
        metadata = _checked_metadata(content.pop("__metadata__", {}))
        entries = {name: _entry(name, given) for name, given in content.items()}
        _check_layout(entries, length - 8 - size)
    except WeightsError as error:
        raise WeightsError(f"{os.fspath(path)} was cut off or damaged: {error}") from None
    return Header(entries, metadata, 8 + size)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("a name occurs twice")
    return out


def _checked_metadata(given: Any) -> dict[str, str]:
    if not isinstance(given, dict) or not all(isinstance(value, str) for value in given.values()):
        raise WeightsError(f"its metadata must be texts by name, not {_brief(repr(given))}")
    return given


def _entry(name: str, given: Any) -> StoredTensor:
    """One tensor, as the header describes it."""
    try:
        dtype, shape, (first, last) = np.dtype(CODES[given["dtype"]]), tuple(given["shape"]), given["data_offsets"]
    except (KeyError, TypeError, ValueError):
        raise WeightsError(f"{_brief(repr(name))} is described by {_brief(repr(given))}, which adjit cannot read") from None
    if any(type(n) is not int or n < 0 for n in (*shape, first, last)) or len(shape) > MAX_RANK:
        raise WeightsError(f"{_brief(repr(name))} is described by {_brief(repr(given))}, which adjit cannot read")
    if math.prod(n for n in shape if n) * dtype.itemsize > sys.maxsize:  # NumPy cannot represent such an array, even if it is empty
        raise WeightsError(f"{_brief(repr(name))} has a shape that no array can have: {_brief(repr(shape))}")
    needed = math.prod(shape) * dtype.itemsize
    if last - first != needed:
        what = f"{dtype}{_brief(str(list(shape)))}"
        raise WeightsError(f"{_brief(repr(name))} is stored at bytes {first} to {last}, but {what} takes {needed}")
    return StoredTensor(dtype, shape, first, last)


def _check_layout(entries: Mapping[str, StoredTensor], size: int) -> None:
    """Check that the tensors cover the data without gaps or overlaps, so that together they need no more memory than the file."""
    at = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].first, item[1].last)):
        if entry.first != at:
            what = "overlaps the one before it" if entry.first < at else "leaves a gap before it"
            raise WeightsError(f"{_brief(repr(name))}, at bytes {entry.first} to {entry.last} of {size}, {what}")
        at = entry.last
    if at != size:
        raise WeightsError(f"its tensors take {at} bytes, but {size} are there")


def _brief(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."


def _shown(name: str) -> str:
    return _brief(name if name.isprintable() else repr(name))


def _read_data(file: BinaryIO, path: Any, header: Header) -> dict[str, Array]:
    """Read the arrays, each directly into its own memory."""
    out = {}
    for name, entry in header.entries.items():
        array = np.empty(entry.shape, entry.dtype)
        raw = array.reshape(-1).view(np.uint8)
        file.seek(header.start + entry.first)
        if file.readinto(raw) != raw.size:  # type: ignore[attr-defined] # every binary file has it
            raise WeightsError(f"{os.fspath(path)} was cut off while it was read")
        if entry.dtype.kind == "b" and (raw > 1).any():
            raise WeightsError(f"{os.fspath(path)} was damaged: {_brief(repr(name))} holds bytes that are not booleans")
        out[name] = array.astype(entry.dtype.newbyteorder("="), copy=False)
    return out


def read_arrays(path: Any) -> dict[str, Array]:
    """Return the named arrays of a safetensors file.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "a.safetensors")
    >>> aj.nn.write_arrays(path, {"w": np.arange(3.0)})
    >>> aj.nn.read_arrays(path)["w"]
    array([0., 1., 2.])
    """
    with open(path, "rb") as file:
        return _read_data(file, path, read_header(file, path))


def read_metadata(path: Any) -> dict[str, str]:
    """Return the metadata strings stored with the arrays.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "a.safetensors")
    >>> aj.nn.write_arrays(path, {"w": np.arange(3.0)}, {"epoch": "7"})
    >>> aj.nn.read_metadata(path)
    {'epoch': '7'}
    """
    with open(path, "rb") as file:
        return read_header(file, path).metadata


# ---- variables


def named(target: Any) -> Iterator[tuple[str, Variable]]:
    """Variables of a module, or of a structure of modules and variables, by name."""
    if not isinstance(target, Module | Variable | dict | list | tuple):
        order = "; the path comes first: nn.save(path, model), nn.load(path, model)" if isinstance(target, str | os.PathLike) else ""
        raise TypeError(f"variables are saved from modules, variables and structures of them, not from {type(target).__name__}{order}")
    for path, variable, _ in walk(target, "", True, set()):
        yield path or "variable", variable


@boundary
def save(path: Any, target: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write all variables of a module (or of a dict of modules) to a safetensors file.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "w.safetensors")
    >>> layer = aj.nn.Dense(2)
    >>> _ = layer(np.ones((1, 3), "f4"))
    >>> aj.nn.save(path, layer)
    >>> sorted(aj.nn.read_arrays(path))
    ['bias', 'kernel']
    """
    arrays = {name: np.asarray(variable.numpy()) for name, variable in named(target)}
    if not arrays:
        raise WeightsError(f"there are no variables to save to {os.fspath(path)}: a model has none before its first call")
    write_arrays(path, arrays, metadata)


@boundary
def load(path: Any, target: Any, strict: bool = True, ignore: tuple[str, ...] = ()) -> None:
    """Assign the variables of a module (or of a dict of modules) from a file.

    With `strict`, both must have the same names; otherwise, names that only one has are ignored. Shapes and dtypes must always match.
    Names in the file that begin with one of `ignore` are left out.

    >>> import tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "w.safetensors")
    >>> a, b = aj.nn.Dense(2), aj.nn.Dense(2)
    >>> x = np.ones((1, 3), "f4")
    >>> _ = a(x), b(x)
    >>> aj.nn.save(path, a)
    >>> aj.nn.load(path, b)
    >>> bool(np.all(a(x) == b(x)))
    True
    """
    with open(path, "rb") as file:
        header, variables = read_header(file, path), dict(named(target))
        entries = {name: entry for name, entry in header.entries.items() if not name.startswith(ignore)}
        _check_fit(path, entries, variables, strict)
        arrays = _read_data(file, path, header)
    _assign_all([(variable, wrap(arrays[name])) for name, variable in variables.items() if name in arrays])


def _assign_all(values: Sequence[tuple[Variable, Tensor]]) -> None:
    """Assign all values or none: an interrupt leaves the variables unchanged."""
    before = [variable.value() for variable, _ in values]
    try:
        for variable, value in values:
            variable.assign(value)
    except BaseException:
        for (variable, _), old in zip(values, before, strict=True):
            variable.assign(old)
        raise


def _check_fit(path: Any, entries: Mapping[str, StoredTensor], variables: Mapping[str, Variable], strict: bool) -> None:
    """Raise WeightsError, with a list of differences, unless the variables can be assigned from the file."""
    problems = []
    for name in sorted({*entries, *variables} if strict else {*entries} & {*variables}):
        entry, variable = entries.get(name), variables.get(name)
        there = f"{entry.dtype.name}{_brief(str(list(entry.shape)))}" if entry is not None else ""
        if variable is None:
            problems.append(f"{_shown(name)} ({there}) is only in the file")
        elif entry is None:
            problems.append(f"{_shown(name)} ({variable.type}) is not in the file")
        elif entry.shape != variable.shape or entry.dtype.newbyteorder("=") != variable.dtype:
            problems.append(f"{_shown(name)} is {there} in the file and {variable.type} here")
    if problems:
        more = f"\n  ... and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        built = "call the model once, or `optimizer.build(model.trainable_variables)`, before loading"
        hint = "" if variables else f"\n  nothing is built yet: {built}"
        raise WeightsError(f"{os.fspath(path)} does not fit:\n  " + "\n  ".join(problems[:SHOWN]) + more + hint)
