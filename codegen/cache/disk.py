"""Object code on disk, so that a program which was compiled once starts warm.

    ADJIT_CACHE_DIR   where: by default $XDG_CACHE_HOME/adjit, or ~/.cache/adjit
    ADJIT_CACHE=0     off

What is read here is executed. So the directory must belong to this user and be writable by nobody else, and so must every entry, which has
no other name either; an entry carries a SHA-256 of its name and its code. Anything that is not as it should be (corrupt, truncated,
foreign, unreadable) is a miss, and is replaced; a disk that is full or read-only means that nothing is kept. No call ever fails, or says a
word, because of this cache.

Entries are named by a hash of all that decides the code. They hold no addresses: what they import is bound by name when they are linked.
Processes need no lock: an entry appears by a rename, whole. There is no state in memory either, so forks and threads are safe.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from adjit.ir.environment import value

FORMAT = "1"  # of the entries, and of what llvm.py does with the text: a new number makes all entries misses
MAGIC = b"adjit object " + FORMAT.encode() + b"\n"
SUFFIX, UNFINISHED = ".object", ".tmp"
LIMIT = 512 << 20  # bytes of all entries
LOOKS = 32  # how often the whole directory is looked at while LIMIT bytes are written, on average
TOUCH_AFTER = 3600.0  # seconds: an entry that is used has an mtime of at most this age
ABANDON_AFTER = 3600.0  # seconds: after which the temporary file of a process that died is removed

ACL = "system.posix_acl_access"  # a version, then entries of a tag, rights and an id: 2, 2 and 4 bytes
ACL_MASK, ACL_OTHERS, ACL_WRITE = 0x10, (0x02, 0x04, 0x08, 0x20), 2  # others: a user, the group, a group, everybody else

HAS_POSIX = hasattr(os, "geteuid") and os.open in os.supports_dir_fd and os.scandir in os.supports_fd


def key(*parts: str | bytes) -> bytes:
    """The name of an entry, from all that decides what it holds."""
    return digest(*(part if isinstance(part, bytes) else part.encode() for part in (FORMAT, *parts)))


def cached(key: bytes, make: Callable[[], bytes]) -> bytes:
    """What `make` gives, from the disk if it was made before."""
    path = directory()
    if path is None:
        return make()
    found = load(path, key)
    if found is None:
        found = make()
        store(path, key, found)
    return found


def directory() -> str | None:
    """Where entries are kept; None when there is no cache."""
    if not HAS_POSIX or value("ADJIT_CACHE") == "0":
        return None
    given, base = value("ADJIT_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME", "")
    if given:
        return os.path.abspath(os.path.expanduser(given))
    if not os.path.isabs(base):  # the XDG specification has relative paths ignored
        base = os.path.expanduser("~/.cache")
    return os.path.join(base, "adjit") if os.path.isabs(base) else None  # a user without a home has none


def digest(*parts: bytes) -> bytes:
    """SHA-256 of a sequence: where one part ends and the next begins counts."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL, 4 ms

    out = hashlib.sha256()
    for part in parts:
        out.update(len(part).to_bytes(8, "little"))
        out.update(part)
    return out.digest()


def load(path: str, key: bytes) -> bytes | None:
    """The code of an entry; None when there is none that can be trusted."""
    try:
        with _opened(path) as folder:
            # O_NONBLOCK: whatever lies there under our name, opening it does not hang
            entry = os.open(key.hex() + SUFFIX, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with os.fdopen(entry, "rb") as file:
                status = os.fstat(entry)
                if not (stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and _is_ours(entry, status) and status.st_size <= LIMIT):
                    return None
                content = file.read()
                if time.time() - status.st_mtime > TOUCH_AFTER:
                    with suppress(OSError):  # a read-only disk: its entries are as good
                        os.utime(entry)
    except (OSError, ValueError):
        return None
    start = len(MAGIC) + len(key)
    checksum, code = content[len(MAGIC) : start], content[start:]
    return code if content.startswith(MAGIC) and checksum == digest(key, code) else None


def store(path: str, key: bytes, code: bytes) -> None:
    """Keep an entry, if the disk allows it."""
    content = MAGIC + digest(key, code) + code
    if len(content) * LOOKS > LIMIT:
        return
    with suppress(OSError, ValueError):
        _make(path)
        with _opened(path) as folder:
            _write(folder, key.hex() + SUFFIX, content)
            # no process knows what the others write: by chance, in proportion to the bytes, one of them looks at the whole
            if int.from_bytes(os.urandom(8), "little") * LIMIT < len(content) * LOOKS << 64:
                _trim(folder)


def _make(path: str) -> None:
    if not os.path.isdir(path):
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """The directory, held open: what was checked is what is used, whatever happens to its name."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _is_ours(folder, os.fstat(folder)):
            raise PermissionError(f"{path} belongs to another user, or others may write to it")
        yield folder
    finally:
        os.close(folder)


def _is_ours(opened: int, status: os.stat_result) -> bool:
    """Whether it belongs to this user, and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not _has_writers(opened)


def _has_writers(opened: int) -> bool:
    """Whether an access control list lets others write. Its mask should show as the group's bits of the mode: this does not rely on it."""
    if not hasattr(os, "getxattr"):
        return False
    try:
        acl = os.getxattr(opened, ACL)
    except OSError:  # there is none, or the file system knows none
        return False
    entries = [int.from_bytes(acl[at : at + 2], "little") for at in range(4, len(acl), 8)]
    rights = [int.from_bytes(acl[at + 2 : at + 4], "little") for at in range(4, len(acl), 8)]
    masks = [right for tag, right in zip(entries, rights, strict=True) if tag == ACL_MASK] or [ACL_WRITE]
    return any(right & masks[0] & ACL_WRITE for tag, right in zip(entries, rights, strict=True) if tag in ACL_OTHERS)


def _write(folder: int, name: str, content: bytes) -> None:
    """Without fsync: an entry that a power failure left half written is found out by its checksum."""
    temporary = os.urandom(8).hex() + UNFINISHED
    entry = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
    try:
        with os.fdopen(entry, "wb") as file:
            file.write(content)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def _trim(folder: int) -> None:
    """Remove the entries that were used least recently, and what dead processes left."""
    entries: list[tuple[float, int, str]] = []
    abandoned = time.time() - ABANDON_AFTER
    with os.scandir(folder) as files:
        for file in files:
            with suppress(FileNotFoundError):  # another process is doing the same
                status = file.stat(follow_symlinks=False)
                if file.name.endswith(SUFFIX):
                    entries.append((status.st_mtime, status.st_size, file.name))
                elif file.name.endswith(UNFINISHED) and status.st_mtime < abandoned:
                    os.unlink(file.name, dir_fd=folder)
    excess = sum(size for _, size, _ in entries) - LIMIT * (LOOKS - 2) // LOOKS
    for _, size, name in sorted(entries):
        if excess <= 0:
            return
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        excess -= size
