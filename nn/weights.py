"""Saving and loading variables: safetensors files, which hold nothing that runs.

    save("run.safetensors", model)
    save("run.safetensors", {"model": model, "optimizer": optimizer}, metadata={"epoch": "3"})
    load("run.safetensors", {"model": model, "optimizer": optimizer})

A file is written beside the old one and renamed over it when it is complete and on the disk: a crash leaves the old file or the new one.
Loading checks names, shapes and dtypes of everything before it assigns anything.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from adjit.ir.errors import AdjitError
from adjit.ir.ops.base import Array
from adjit.runtime.variable import Variable

from .module import Module, walk

__all__ = ["save", "load", "write_arrays", "read_arrays", "read_metadata", "WeightsError"]

CODES = {
    "F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1", "U64": "<u8", "U32": "<u4", "U16": "<u2",
    "U8": "|u1", "BOOL": "|b1",
}  # fmt: skip
NAMES = {np.dtype(code): name for name, code in CODES.items()}
LONGEST_HEADER = 100_000_000  # bytes: what the format allows
SHOWN = 8  # mismatches in a message


class WeightsError(AdjitError, ValueError):
    """A file of weights that is broken, or does not fit what it is loaded into."""


# ---- files


def write_arrays(path: Any, arrays: Mapping[str, Array], metadata: Mapping[str, str] | None = None) -> None:
    """Write named arrays as a safetensors file, all or nothing."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    prepared: list[Array] = []
    offset = 0
    for name, array in arrays.items():
        if name == "__metadata__" or array.dtype.newbyteorder("<") not in NAMES:
            raise WeightsError(f"{name!r} ({array.dtype}) cannot be written to {os.fspath(path)}: the format has no such name or dtype")
        data = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
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
            shutil.copymode(path, temporary)  # who may read it stays as it was
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    sync_folder(folder)


def sync_folder(folder: str) -> None:
    """Make a rename durable, where the system lets folders be opened."""
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


def read_header(path: Any, data: bytes) -> tuple[dict[str, Any], int]:
    """The header of a file, and where the data starts; raises WeightsError for anything that is not one."""
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or size > min(LONGEST_HEADER, len(data) - 8):
        raise WeightsError(f"{os.fspath(path)} is no safetensors file, or was cut off: it has {len(data)} bytes")
    try:
        header = json.loads(data[8 : 8 + size])
    except ValueError as error:
        raise WeightsError(f"{os.fspath(path)} is no safetensors file: its header is no JSON ({error})") from None
    if not isinstance(header, dict):
        raise WeightsError(f"{os.fspath(path)} is no safetensors file: its header is no object")
    return header, 8 + size


def read_arrays(path: Any) -> dict[str, Array]:
    """The named arrays of a safetensors file."""
    with open(path, "rb") as file:
        data = file.read()
    header, start = read_header(path, data)
    out = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape = np.dtype(CODES[entry["dtype"]]), tuple(int(n) for n in entry["shape"])
            first, last = (int(n) for n in entry["data_offsets"])
        except (KeyError, TypeError, ValueError):
            raise WeightsError(f"{os.fspath(path)}: {name!r} is described by {entry!r}, which adjit cannot read") from None
        if min(shape, default=0) < 0 or not 0 <= first <= last <= len(data) - start or last - first != math.prod(shape) * dtype.itemsize:
            where = f"at bytes {first} to {last} of {len(data) - start}"
            raise WeightsError(f"{os.fspath(path)} was cut off or damaged: {name!r} is to lie {where}")
        array = np.frombuffer(data, dtype, math.prod(shape), start + first).reshape(shape)
        out[name] = array.astype(dtype.newbyteorder("="))
    return out


def read_metadata(path: Any) -> dict[str, str]:
    """The texts that were saved beside the arrays."""
    with open(path, "rb") as file:
        data = file.read(8)
        data += file.read(min(int.from_bytes(data, "little"), LONGEST_HEADER))
    header, _ = read_header(path, data)
    return {str(k): str(v) for k, v in header.get("__metadata__", {}).items()}


# ---- variables


def named(target: Any) -> Iterator[tuple[str, Variable]]:
    """Variables of a module, or of a structure of modules and variables, by name."""
    if not isinstance(target, Module | Variable | dict | list | tuple):
        raise TypeError(f"variables are saved from modules, variables and structures of them, not from {type(target).__name__}")
    for path, variable, _ in walk(target, "", True, set()):
        yield path or "variable", variable


def save(path: Any, target: Any, metadata: Mapping[str, str] | None = None) -> None:
    """Write all variables of a module (or of a dict of modules) to a safetensors file."""
    arrays = {name: np.asarray(variable.numpy()) for name, variable in named(target)}
    if not arrays:
        raise WeightsError(f"there are no variables to save to {os.fspath(path)}: a model has none before its first call")
    write_arrays(path, arrays, metadata)


def load(path: Any, target: Any, strict: bool = True) -> None:
    """Assign the variables of a module (or of a dict of modules) from a file.

    With `strict`, both must have the same names; without, those that only one has are left alone. Shapes and dtypes must always fit.
    """
    arrays, variables = read_arrays(path), dict(named(target))
    problems = []
    for name in sorted({*arrays, *variables} if strict else {*arrays} & {*variables}):
        if name not in variables:
            problems.append(f"{name} ({arrays[name].dtype}{list(arrays[name].shape)}) is in the file alone")
        elif name not in arrays:
            problems.append(f"{name} ({variables[name].type}) is not in the file")
        elif arrays[name].shape != variables[name].shape or arrays[name].dtype != variables[name].dtype:
            problems.append(f"{name} is {arrays[name].dtype}{list(arrays[name].shape)} in the file and {variables[name].type} here")
    if problems:
        more = f"\n  ... and {len(problems) - SHOWN} more" if len(problems) > SHOWN else ""
        built = "call the model once, or `optimizer.build(model.trainable_variables)`, before loading"
        hint = "" if variables else f"\n  nothing is built yet: {built}"
        raise WeightsError(f"{os.fspath(path)} does not fit:\n  " + "\n  ".join(problems[:SHOWN]) + more + hint)
    for name, variable in variables.items():
        if name in arrays:
            variable.assign(arrays[name])
