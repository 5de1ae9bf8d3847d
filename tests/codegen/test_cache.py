"""The disk cache of object code: a hit returns the same code, any fault of an entry or the disk is a miss, and no call fails."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from adjit.codegen.cache import disk as cache
from adjit.codegen.llvm import toolchain as llvm
from adjit.codegen.llvm.target import current

pytestmark = pytest.mark.skipif(not cache.HAS_POSIX, reason="the cache needs POSIX permissions")

PARTS = ("define void @f() { ret void }", "some-triple")
CODE = bytes(range(256)) * 8
IR = "define i64 @f() {\n  ret i64 42\n}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache"
    monkeypatch.setenv("ADJIT_CACHE_DIR", str(path))
    monkeypatch.delenv("ADJIT_CACHE", raising=False)
    return path


class Maker:
    """Counts how often an object had to be created."""

    def __init__(self, code: bytes = CODE) -> None:
        self.code, self.count = code, 0

    def __call__(self) -> bytes:
        self.count += 1
        return self.code


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*" + cache.SUFFIX))


def made_again(parts: tuple[str, ...] = PARTS) -> bool:
    make = Maker()
    assert cache.cached(cache.key(*parts), make) == CODE
    return bool(make.count)


def test_a_second_request_reads_the_disk(folder: Path) -> None:
    assert made_again()
    assert not made_again()
    (entry,) = entries(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert list(folder.iterdir()) == [entry]


def test_every_part_counts_and_so_do_its_borders(folder: Path) -> None:
    for parts in [("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ("c", "ab")]:
        assert made_again(parts)
    assert len(entries(folder)) == 5


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:10],
        lambda content: content[: len(cache.MAGIC) + 32],
        lambda content: content[:-1],
        lambda content: content + b"\0",
        lambda content: content[:-5] + bytes([content[-5] ^ 1]) + content[-4:],
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        lambda content: content[: len(cache.MAGIC)] + bytes(32) + content[len(cache.MAGIC) + 32 :],
        lambda content: os.urandom(len(content)),
    ],
)
def test_a_damaged_entry_is_a_miss_and_is_replaced(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    made_again()
    (entry,) = entries(folder)
    entry.write_bytes(damage(entry.read_bytes()))
    assert made_again()
    assert not made_again()


def test_an_entry_under_another_name_is_a_miss(folder: Path) -> None:
    made_again()
    (first,) = entries(folder)
    cache.cached(cache.key("other"), Maker(b"other code"))
    (other,) = set(entries(folder)) - {first}
    first.write_bytes(other.read_bytes())
    assert made_again()


def test_an_entry_that_others_may_write_is_a_miss_and_is_replaced(folder: Path) -> None:
    made_again()
    (entry,) = entries(folder)
    entry.chmod(0o666)
    assert made_again()
    assert not made_again()


def test_an_entry_of_another_user_is_a_miss_and_is_replaced(folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    made_again()
    (entry,) = entries(folder)
    os.chown(entry, 12345, -1)
    assert made_again()
    assert not made_again()


@pytest.mark.parametrize("kind", ["link", "pipe", "directory"])
def test_an_entry_that_is_not_a_file_is_a_miss(folder: Path, tmp_path: Path, kind: str) -> None:
    made_again()
    (entry,) = entries(folder)
    if kind == "link":
        entry.rename(tmp_path / "elsewhere")
        entry.symlink_to(tmp_path / "elsewhere")
    else:
        entry.unlink()
        os.mkfifo(entry) if kind == "pipe" else entry.mkdir()
    assert made_again()
    assert made_again() == (kind == "directory")  # which a rename does not replace


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_may_write_is_refused(folder: Path, mode: int) -> None:
    folder.mkdir()
    folder.chmod(mode)
    assert made_again()
    assert made_again()
    assert not list(folder.iterdir())


def test_a_directory_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_again()
    us = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: us + 1)
    assert made_again()
    assert made_again(("never stored",))
    assert len(entries(folder)) == 1


@pytest.mark.parametrize("path", ["/dev/null", "/dev/null/below", "/proc/self/task", "/proc/no/such", "\0", "x" * 5000])
def test_a_directory_that_cannot_be_written_fails_no_call(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.delenv("ADJIT_CACHE", raising=False)
    monkeypatch.setattr(cache, "directory", lambda: path)  # the environment could not hold all of these
    assert made_again()
    assert made_again()


def test_a_read_only_directory_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_again()
    (entry,) = entries(folder)
    os.utime(entry, (0, 0))

    def refuse(*args: object, **kwargs: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    monkeypatch.setattr(os, "replace", refuse)
    assert not made_again()
    assert made_again(("another",))
    assert list(folder.iterdir()) == [entry]  # no temporary file stays


def test_a_full_disk_fails_no_call(folder: Path) -> None:
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"
    code += "from adjit.codegen.cache import disk as cache; assert cache.cached(cache.key('a'), lambda: bytes(9999)) == bytes(9999)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert list(folder.iterdir()) == []


def test_off(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADJIT_CACHE", "0")
    assert made_again()
    assert made_again()
    assert not folder.exists()


def test_where(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ADJIT_CACHE", "ADJIT_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/me")
    assert cache.directory() == "/home/me/.cache/adjit"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.directory() == "/home/me/.cache/adjit"
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache.directory() == "/caches/adjit"
    monkeypatch.setenv("ADJIT_CACHE_DIR", "~/mine")
    assert cache.directory() == "/home/me/mine"


def test_the_least_recently_used_go_when_there_is_too_much(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 20 * len(CODE))
    monkeypatch.setattr(cache, "LOOKS", 10)  # so that writes of this size look at the directory half the time
    now = time.time()
    for k in range(40):
        made_again((str(k),))
        for entry in entries(folder):
            if entry.stat().st_mtime > now - 1000:
                os.utime(entry, (now - 100_000 + 1000 * k,) * 2)
        assert not made_again(("0",))  # used repeatedly, so it stays: reading counts as a use
    folded = os.open(folder, os.O_RDONLY)
    cache._trim(folded)
    os.close(folded)
    left = entries(folder)
    assert sum(e.stat().st_size for e in left) <= cache.LIMIT
    assert len(left) > 10
    assert not made_again(("0",))
    assert not made_again(("39",))
    assert made_again(("1",))


def test_an_object_that_would_fill_the_cache_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 10 * len(CODE))
    assert made_again()
    assert made_again()


def test_what_dead_processes_left_goes_and_other_files_stay(folder: Path) -> None:
    made_again()
    for name, age in (("old.tmp", 10_000), ("new.tmp", 0), ("notes.txt", 10_000)):
        (folder / name).write_text("x")
        os.utime(folder / name, (time.time() - age,) * 2)
    opened = os.open(folder, os.O_RDONLY)
    cache._trim(opened)
    os.close(opened)
    assert {p.name for p in folder.iterdir()} == {"new.tmp", "notes.txt", entries(folder)[0].name}


def test_threads_that_read_write_and_trim_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "LIMIT", 64 * len(CODE))
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda k: cache.cached(cache.key(str(k % 90)), lambda: CODE) == CODE, range(2000)))
    assert not list(folder.glob("*.tmp"))


# ---- with LLVM


def test_assemble_compiles_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = llvm.assemble(IR, current()).code
    (entry,) = entries(folder)
    assert entry.read_bytes().endswith(code)

    def refuse(*args: object) -> None:
        raise AssertionError("compiled again")

    monkeypatch.setattr(llvm, "_parsed", refuse)
    assert llvm.assemble(IR, current()).code == code
    with pytest.raises(AssertionError, match="compiled again"):
        llvm.assemble(f"{IR}; another", current())


def test_an_entry_with_another_name_is_a_miss(folder: Path) -> None:
    made_again()
    (entry,) = entries(folder)
    os.link(entry, folder / "another")
    assert made_again()  # and replaced: the new one has one name
    assert not made_again()


def acl(*entries: tuple[int, int, int]) -> bytes:
    """An access control list as Linux stores it: tags, rights and ids."""
    return (2).to_bytes(4, "little") + b"".join(
        tag.to_bytes(2, "little") + rights.to_bytes(2, "little") + who.to_bytes(4, "little") for tag, rights, who in entries
    )


NOBODY, NO_ID = 65534, 0xFFFFFFFF
READS = acl((1, 7, NO_ID), (2, 5, NOBODY), (4, 0, NO_ID), (0x10, 5, NO_ID), (0x20, 0, NO_ID))
WRITES = acl((1, 7, NO_ID), (2, 7, NOBODY), (4, 0, NO_ID), (0x10, 7, NO_ID), (0x20, 0, NO_ID))
MASKED = acl((1, 7, NO_ID), (2, 7, NOBODY), (4, 0, NO_ID), (0x10, 5, NO_ID), (0x20, 0, NO_ID))


@pytest.mark.parametrize("where", ["folder", "entry"])
def test_access_control_lists_count(folder: Path, where: str) -> None:
    made_again()
    path = folder if where == "folder" else entries(folder)[0]
    try:
        os.setxattr(path, cache.ACL, READS)
    except (OSError, AttributeError):
        pytest.skip("the file system of temporary files knows no access control lists")
    assert not made_again()
    os.setxattr(path, cache.ACL, MASKED)
    assert not made_again()
    os.setxattr(path, cache.ACL, WRITES)
    assert made_again()


def test_a_list_that_the_mode_does_not_show(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that others have the right to write is not trusted, whatever its mode is."""
    made_again()
    for content, is_refused in ((READS, False), (MASKED, False), (WRITES, True), (acl((1, 6, NO_ID), (4, 6, NO_ID)), True), (b"", False)):
        monkeypatch.setattr(os, "getxattr", lambda *_, content=content: content, raising=False)
        assert made_again() == is_refused


PROGRAM = """
import sys
import numpy as np
import adjit as aj
w = aj.Variable(np.linspace(-1, 1, 128 * 128).reshape(128, 128).astype("f4"))
@aj.function
def step(x, i):
    with aj.GradientTape() as tape:
        loss = np.sum(np.tanh(x @ w) ** 2) + np.sum(x[i])
    w.assign_sub(0.01 * tape.gradient(loss, w))
    return loss
@aj.function
def quick(x):
    return 2.0 * x + np.array([1.0, 2.0])
x = np.linspace(0, 1, 96 * 128).reshape(96, 128).astype("f4")
print(float(step(x, np.array([3, 1]))), quick(np.ones(2)).numpy().tolist())
try:
    step(x, np.array([3, 99]))
except IndexError as error:
    print(str(error).splitlines()[0])
from adjit.codegen.llvm import binding
print("compiled" if binding.able_to_compile.is_made() else "linked")
"""


def run(seed: int, **environment: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONHASHSEED": str(seed), **environment}
    return subprocess.Popen([sys.executable, "-c", PROGRAM], env=env, stdout=subprocess.PIPE, text=True)


def outcome(process: subprocess.Popen[str]) -> list[str]:
    out, _ = process.communicate()
    assert process.returncode == 0
    return out.splitlines()


def test_processes_share_entries_which_hold_no_address_and_no_chance(folder: Path) -> None:
    """Address spaces and hash seeds differ from process to process: the second compiles nothing, because its text is the same."""
    *first, how = outcome(run(1))
    assert how == "compiled"
    before = entries(folder)
    assert len(before) >= 4  # two functions, the routines that they share, and the entry
    *second, how = outcome(run(2))
    assert how == "linked"
    assert second == first
    assert entries(folder) == before


def test_processes_that_start_together(folder: Path) -> None:
    outcomes = [outcome(p)[:-1] for p in [run(seed) for seed in range(4)]]
    assert all(each == outcomes[0] for each in outcomes)
    assert not list(folder.glob("*.tmp"))
    assert outcome(run(5)) == [*outcomes[0], "linked"]
