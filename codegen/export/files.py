"""Files of object code: static libraries, written here, and shared ones, linked by the C compiler."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress

from adjit.ir.errors import UnsupportedError
from adjit.ir.target import Target

ARCHIVE = b"!<arch>\n"


def archive(member: str, code: bytes, symbols: Sequence[str]) -> bytes:
    """A static library of one object file, in the format of System V: an index of the symbols, a table of long names, the object."""
    names = f"{member}/\n".encode()
    strings = b"".join(s.encode() + b"\0" for s in symbols)
    index_size = 4 + 4 * len(symbols) + len(strings)
    at = len(ARCHIVE) + 60 + index_size + index_size % 2 + 60 + len(names) + len(names) % 2
    index = len(symbols).to_bytes(4, "big") + at.to_bytes(4, "big") * len(symbols) + strings
    return ARCHIVE + _member("/", index) + _member("//", names) + _member("/0", code)


def _member(name: str, content: bytes) -> bytes:
    head = f"{name:<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(content):<10}`\n".encode()
    return head + content + b"\n" * (len(content) % 2)


def shared(code: bytes, path: str, target: Target) -> None:
    """Link a shared library with the C compiler: $CC, or the usual one for the target."""
    compiler = _compiler(target)
    with tempfile.TemporaryDirectory() as folder:
        source, made = os.path.join(folder, "program.o"), os.path.join(folder, "program.so")
        with open(source, "wb") as file:
            file.write(code)
        name = os.path.basename(path)
        libraries = ["-lm", *(["-lpthread"] if target.threads > 1 else [])]
        options = [f"-Wl,-soname,{name}", "-Wl,-z,defs"] if "linux" in target.triple else []
        command = [*compiler, "-shared", "-o", made, source, *options, *libraries]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnsupportedError(f"export: {' '.join(compiler)} could not link {name}:\n{done.stderr}")
        with open(made, "rb") as file:
            linked = file.read()
    write(path, linked)
    os.chmod(path, os.stat(path).st_mode | 0o111)


def _compiler(target: Target) -> list[str]:
    machine = target.triple.split("-")[0]
    given = os.environ.get("CC", "").split()
    if given:
        return given
    candidates = [f"{machine}-linux-gnu-gcc"] if machine != platform.machine() else ["cc", "gcc", "clang"]
    for name in candidates:
        if shutil.which(name):
            return [name]
    raise UnsupportedError(
        f"export: linking a shared library needs a C compiler for {machine}, but {' or '.join(candidates)} was not found; "
        "install one, name one in the environment variable CC, or export a .o or .a file, which needs no compiler"
    )


def write(path: str, content: bytes | str) -> str:
    """Write a file atomically: others see either the old or the new content."""
    data = content.encode() if isinstance(content, str) else content
    made = f"{path}.{os.getpid()}.{threading.get_ident()}"
    try:
        with open(made, "wb") as file:
            file.write(data)
        os.replace(made, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(made)
        raise
    return path
