"""Object code on disk, so that programs compiled before start quickly.

    ADJIT_CACHE_DIR   location: by default $XDG_CACHE_HOME/adjit, or ~/.cache/adjit
    ADJIT_CACHE=0     disables the cache

The contents are executed. Therefore the directory and every entry must belong to this user and not be writable by anyone else, and an entry
must have no other hard links; an entry contains a SHA-256 of its name and its code. Any other entry (corrupt, truncated, foreign,
unreadable) is a cache miss, and is replaced; if the disk is full or read-only, nothing is stored. The cache never makes a call fail, and
never prints anything.

Entries are named by a hash of everything that determines the code. They contain no addresses: imports are bound by name when they are
linked. Processes need no lock, since entries are created atomically, by a rename. There is no state in memory either, so forks and threads
are safe.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from adjit.ir.environment import value

FORMAT = "1"  # version of the entries and of how toolchain.py compiles: a new number invalidates all entries
MAGIC = b"adjit object " + FORMAT.encode() + b"\n"
SUFFIX, UNFINISHED = ".object", ".tmp"
LIMIT = 512 << 20  # total size of all entries in bytes
LOOKS = 32  # average number of scans of the directory while LIMIT bytes are written
TOUCH_AFTER = 3600.0  # seconds: the mtime of an entry in use is refreshed when it is older than this
ABANDON_AFTER = 3600.0  # seconds after which the temporary file of a dead process is removed

ACL = "system.posix_acl_access"  # a version, then entries of tag, permissions and id: 2, 2 and 4 bytes
ACL_MASK, ACL_OTHERS, ACL_WRITE = 0x10, (0x02, 0x04, 0x08, 0x20), 2  # others: named user, group, named group, everyone else

HAS_POSIX = hasattr(os, "geteuid") and os.open in os.supports_dir_fd and os.scandir in os.supports_fd


def key(*parts: str | bytes) -> bytes:
    """The name of an entry, from everything that determines its contents."""
    return digest(*(part if isinstance(part, bytes) else part.encode() for part in (FORMAT, *parts)))


def cached(key: bytes, make: Callable[[], bytes]) -> bytes:
    """The result of `make`, from the disk if it was stored before."""
    path = directory()
    if path is None:
        return make()
    found = load(path, key)
    if found is None:
        found = make()
        store(path, key, found)
    return found


def directory() -> str | None:
    """The directory of the entries; None if the cache is disabled."""
    if not HAS_POSIX or value("ADJIT_CACHE") == "0":
        return None
    given, base = value("ADJIT_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME", "")
    if given:
        return os.path.abspath(os.path.expanduser(given))
    if not os.path.isabs(base):  # the XDG specification says to ignore relative paths
        base = os.path.expanduser("~/.cache")
    return os.path.join(base, "adjit") if os.path.isabs(base) else None  # a user may have no home directory


def digest(*parts: bytes) -> bytes:
    """SHA-256 of a sequence of parts, which depends on where each part ends."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL, 4 ms

    out = hashlib.sha256()
    for part in parts:
        out.update(len(part).to_bytes(8, "little"))
        out.update(part)
    return out.digest()


def load(path: str, key: bytes) -> bytes | None:
    """The code of an entry; None if there is none that can be trusted."""
    try:
        with _opened(path) as folder:
            # O_NONBLOCK: opening must not block, whatever kind of file has this name
            entry = os.open(key.hex() + SUFFIX, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            with os.fdopen(entry, "rb") as file:
                status = os.fstat(entry)
                if not (stat.S_ISREG(status.st_mode) and status.st_nlink == 1 and _is_ours(entry, status) and status.st_size <= LIMIT):
                    return None
                content = file.read()
                if time.time() - status.st_mtime > TOUCH_AFTER:
                    with suppress(OSError):  # on a read-only disk, the entry is still valid
                        os.utime(entry)
    except (OSError, ValueError):
        return None
    start = len(MAGIC) + len(key)
    checksum, code = content[len(MAGIC) : start], content[start:]
    return code if content.startswith(MAGIC) and checksum == digest(key, code) else None


def store(path: str, key: bytes, code: bytes) -> None:
    """Store an entry, if the disk allows it."""
    content = MAGIC + digest(key, code) + code
    if len(content) * LOOKS > LIMIT:
        return
    with suppress(OSError, ValueError):
        _make(path)
        with _opened(path) as folder:
            _write(folder, key.hex() + SUFFIX, content)
            # processes do not know what others write: scan the directory at random, with probability proportional to the bytes
            if int.from_bytes(os.urandom(8), "little") * LIMIT < len(content) * LOOKS << 64:
                _trim(folder)


def _make(path: str) -> None:
    if not os.path.isdir(path):
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)


@contextmanager
def _opened(path: str) -> Iterator[int]:
    """Open and check the directory. The descriptor keeps referring to the checked directory, even if its path is changed."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _is_ours(folder, os.fstat(folder)):
            raise PermissionError(f"{path} belongs to another user, or others may write to it")
        yield folder
    finally:
        os.close(folder)


def _is_ours(opened: int, status: os.stat_result) -> bool:
    """Whether a file belongs to this user and is not writable by anyone else."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not _has_writers(opened)


def _has_writers(opened: int) -> bool:
    """Whether an access control list lets others write. Its mask should equal the group bits of the mode, but this does not rely on it."""
    if not hasattr(os, "getxattr"):
        return False
    try:
        acl = os.getxattr(opened, ACL)
    except OSError:  # there is none, or the file system does not support it
        return False
    entries = [int.from_bytes(acl[at : at + 2], "little") for at in range(4, len(acl), 8)]
    rights = [int.from_bytes(acl[at + 2 : at + 4], "little") for at in range(4, len(acl), 8)]
    masks = [right for tag, right in zip(entries, rights, strict=True) if tag == ACL_MASK] or [ACL_WRITE]
    return any(right & masks[0] & ACL_WRITE for tag, right in zip(entries, rights, strict=True) if tag in ACL_OTHERS)


def _write(folder: int, name: str, content: bytes) -> None:
    """Write an entry atomically. There is no fsync: the checksum detects an entry that a power failure left incomplete."""
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
    """Remove the least recently used entries, and the temporary files of dead processes."""
    entries: list[tuple[float, int, str]] = []
    abandoned = time.time() - ABANDON_AFTER
    with os.scandir(folder) as files:
        for file in files:
            with suppress(FileNotFoundError):  # another process may be trimming too
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
