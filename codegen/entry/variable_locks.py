"""The locks of variables: two words of native memory each, which compiled steps take without running Python code.

    holder      the thread whose call writes to the variable, or zero; TORN if a fork has left it half written
    reserved    nonzero while a call waits for the lock: later calls go through Python, which queues them

The words are modified only with the GIL held (by the native entry, and by the functions here), so that a call takes either all of its locks
at once or none of them: it never waits while holding a lock, so deadlock is impossible. A thread that only reads needs no lock while it
runs. It takes a reference to the array when no call is writing to it; a writer copies an array that others refer to before writing.
"""

from __future__ import annotations

import ctypes
from typing import Any

HELD, BUSY, OWN, BROKEN = range(4)  # results of `adjit_hold`: taken; held by another thread; by this thread; torn by a fork
TORN = -1


class LockWords(ctypes.Structure):
    """The words of one variable's lock."""

    _fields_ = (("holder", ctypes.c_int64), ("reserved", ctypes.c_int64))

    holder: int
    reserved: int


class Locks:
    """The native functions that take and release locks.

    `table` has, for each variable of a call, the address of its lock and whether it is for writing; `held` is a word owned by the call that
    lists the locks that it holds.

    They are C functions that keep the GIL: no Python signal handler runs inside, so an exception cannot occur between taking a lock and
    recording that it is held.
    """

    def __init__(self, address: dict[str, int]) -> None:
        word, words, held = ctypes.c_int64, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64)
        # (table, count, thread, insist, held): takes all locks, or returns why not; with insist, also reserved ones
        self.hold: Any = ctypes.PYFUNCTYPE(word, words, word, word, word, held)(address["adjit_hold"])
        # (table, count, all, held): releases the held locks, or only those for reading
        self.release: Any = ctypes.PYFUNCTYPE(None, words, word, word, held)(address["adjit_release"])
        # (table, count, whether): sets or clears the reservations
        self.reserve: Any = ctypes.PYFUNCTYPE(None, words, word, word)(address["adjit_reserve"])


EXPORTS = ("adjit_hold", "adjit_release", "adjit_reserve")
NUMBERS = {"LOCK_HELD": HELD, "LOCK_BUSY": BUSY, "LOCK_OWN": OWN, "LOCK_BROKEN": BROKEN, "LOCK_TORN": TORN}
TEXT = """
define i64 @adjit_hold(ptr %table, i64 %count, i64 %me, i64 %insist, ptr %held) nounwind {
entry:
  %polite = icmp eq i64 %insist, 0
  br label %check
check:
  %k = phi i64 [0, %entry], [%k.next, %free]
  %k.more = icmp slt i64 %k, %count
  br i1 %k.more, label %look, label %take
look:
  %k.at = mul i64 %k, 2
  %lock = item %table[%k.at]
  %holder = word %lock[0]
  %reserved = word %lock[1]
  %wanted = icmp ne i64 %reserved, 0
  %not.mine = and i1 %wanted, %polite
  switch i64 %holder, label %taken [i64 0, label %unheld
                                    i64 LOCK_TORN, label %torn]
unheld:
  br i1 %not.mine, label %busy, label %free
free:
  %k.next = add i64 %k, 1
  br label %check
taken:
  %own = icmp eq i64 %holder, %me
  br i1 %own, label %mine, label %busy
busy:
  ret i64 LOCK_BUSY
mine:
  ret i64 LOCK_OWN
torn:
  ret i64 LOCK_BROKEN
take:
  %t = phi i64 [0, %check], [%t.next, %one]
  %t.more = icmp slt i64 %t, %count
  br i1 %t.more, label %one, label %done
one:
  %t.at = mul i64 %t, 2
  %t.lock = item %table[%t.at]
  store i64 %me, ptr %t.lock
  %t.next = add i64 %t, 1
  br label %take
done:
  store i64 1, ptr %held
  ret i64 LOCK_HELD
}

; `held` is 1 while all locks are, 2 while those for writing are
define void @adjit_release(ptr %table, i64 %count, i64 %all, ptr %held) nounwind {
entry:
  %state = load i64, ptr %held
  %everything = icmp ne i64 %all, 0
  %keeps.reads = icmp eq i64 %state, 2
  %some = icmp ne i64 %state, 0
  br i1 %some, label %next, label %nothing
next:
  %k = phi i64 [0, %entry], [%k.next, %kept]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %look, label %done
look:
  %k.at = mul i64 %k, 2
  %k.writes.at = add i64 %k.at, 1
  %lock = item %table[%k.at]
  %for.writing = word %table[%k.writes.at]
  %writes = icmp ne i64 %for.writing, 0
  %reads = xor i1 %writes, true
  %reads.held = xor i1 %keeps.reads, true
  %drop.write = and i1 %writes, %everything
  %drop.read = and i1 %reads, %reads.held
  %dropped = or i1 %drop.write, %drop.read
  br i1 %dropped, label %one, label %kept
one:
  store i64 0, ptr %lock
  br label %kept
kept:
  %k.next = add i64 %k, 1
  br label %next
done:
  %after = select i1 %everything, i64 0, i64 2
  store i64 %after, ptr %held
  ret void
nothing:
  ret void
}

define void @adjit_reserve(ptr %table, i64 %count, i64 %whether) nounwind {
entry:
  br label %next
next:
  %k = phi i64 [0, %entry], [%k.next, %one]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %done
one:
  %k.at = mul i64 %k, 2
  %lock = item %table[%k.at]
  %reserved.at = getelementptr i64, ptr %lock, i64 1
  store i64 %whether, ptr %reserved.at
  %k.next = add i64 %k, 1
  br label %next
done:
  ret void
}
"""
