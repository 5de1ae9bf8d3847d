"""The check for signals in LLVM IR: whether a signal must end the call. See `polling.py` for where and when it is checked.

    i1 adjit_look(ptr error)

An error record has nine words. The details that a failing kernel stores for its message come first; a signal stores the exception that its
handler raised in the three words from RAISED on, and 1 in FLAG. For calls of microseconds during which no Python code may run, the
caller stores 1 in QUIET, and no handler runs. This module is cheap to import, because running cached programs needs these numbers.
"""

from __future__ import annotations

import re

INTERRUPTED = -2  # returned by the main function
RAISED, FLAG, QUIET = 4, 7, 8  # word offsets in the error record
RECORD_WORDS = 9
INTERVAL = 20  # milliseconds between two calls into Python, which may have to wait for the GIL
LOOK, SET_MAIN = "adjit_look", "adjit_set_main_thread"

PYTHON = """
declare i32 @PyGILState_Ensure()
declare void @PyGILState_Release(i32)
declare i32 @PyErr_CheckSignals()
declare void @PyErr_Fetch(ptr, ptr, ptr)
"""

CLOCK_DECLARATION = "declare i32 @clock_gettime(i32, ptr)"  # also of the clock in `probes.py`
POSIX_CLOCK = """
define internal i64 @adjit_milliseconds() nounwind {
  %time = alloca [2 x i64]
  %failed = call i32 @clock_gettime(i32 CLOCK, ptr %time)
  %seconds = load i64, ptr %time
  %more.at = getelementptr i64, ptr %time, i64 1
  %more = load i64, ptr %more.at
  %whole = mul i64 %seconds, 1000
  %rest = udiv i64 %more, 1000000
  %all = add i64 %whole, %rest
  ret i64 %all
}
"""
WINDOWS_CLOCK_DECLARATION = "declare i64 @GetTickCount64()"
WINDOWS_CLOCK = """
define internal i64 @adjit_milliseconds() nounwind {
  %all = call i64 @GetTickCount64()
  ret i64 %all
}
"""

QUESTION = """
@adjit_looked = internal global i64 0
define internal i1 @adjit_ask(ptr %error) nounwind {
entry:
  %now = call i64 @adjit_milliseconds()
  %last = load i64, ptr @adjit_looked
  %since = sub i64 %now, %last
  %due = icmp uge i64 %since, INTERVAL
  %quiet.at = getelementptr i64, ptr %error, i64 QUIET
  %quiet = load i64, ptr %quiet.at
  %loud = icmp eq i64 %quiet, 0
  %may = and i1 %due, %loud
  br i1 %may, label %ask, label %no
ask:
  store i64 %now, ptr @adjit_looked
  %state = call i32 @PyGILState_Ensure()
  %code = call i32 @PyErr_CheckSignals()
  %hit = icmp ne i32 %code, 0
  br i1 %hit, label %stop, label %release
stop:
  %type = getelementptr i64, ptr %error, i64 RAISED
  %value = getelementptr i64, ptr %type, i64 1
  %traceback = getelementptr i64, ptr %type, i64 2
  call void @PyErr_Fetch(ptr %type, ptr %value, ptr %traceback)
  %flag = getelementptr i64, ptr %error, i64 FLAG
  store atomic i64 1, ptr %flag release, align 8
  br label %release
release:
  call void @PyGILState_Release(i32 %state)
  ret i1 %hit
no:
  ret i1 false
}
"""

SHARED = """
@adjit_main_thread = internal global i64 0
declare i64 @THREAD()
define void @SET_MAIN(i64 %thread) nounwind {
  store i64 %thread, ptr @adjit_main_thread
  ret void
}
define i1 @LOOK(ptr %error) nounwind {
entry:
  %flag.at = getelementptr i64, ptr %error, i64 FLAG
  %flag = load atomic i64, ptr %flag.at acquire, align 8
  %set = icmp ne i64 %flag, 0
  br i1 %set, label %yes, label %who
who:
  %self = call i64 @THREAD()
  %main = load i64, ptr @adjit_main_thread
  %is.main = icmp eq i64 %self, %main
  br i1 %is.main, label %ask, label %no
ask:
  %hit = call i1 @adjit_ask(ptr %error)
  ret i1 %hit
yes:
  ret i1 true
no:
  ret i1 false
}
"""

LOOPS = """
define internal i1 @adjit_interrupted(ptr %error) nounwind noinline {
  %hit = call i1 @adjit_ask(ptr %error)
  ret i1 %hit
}
"""


def clock_declaration(triple: str) -> str:
    return WINDOWS_CLOCK_DECLARATION if "windows" in triple else CLOCK_DECLARATION


def question(triple: str) -> str:
    """The text of `adjit_ask`, for inclusion in a module that has the `clock_declaration`."""
    clock = WINDOWS_CLOCK if "windows" in triple else POSIX_CLOCK.replace("CLOCK", str(_clock(triple)))
    names = {"INTERVAL": INTERVAL, "RAISED": RAISED, "FLAG": FLAG, "QUIET": QUIET}
    return PYTHON + clock + re.sub(r"\b[A-Z]+\b", lambda word: str(names.get(word[0], word[0])), QUESTION)


def look_ir(triple: str) -> str:
    """The text that the thread pool exports."""
    thread = "GetCurrentThreadId" if "windows" in triple else "pthread_self"
    names = {"THREAD": thread, "SET_MAIN": SET_MAIN, "LOOK": LOOK, "FLAG": str(FLAG)}
    text = SHARED
    for word, meaning in names.items():
        text = text.replace(f"@{word}(", f"@{meaning}(").replace(f"i64 {word}", f"i64 {meaning}")
    return clock_declaration(triple) + question(triple) + text


def loops_ir(triple: str) -> str:
    """The text for the loops of one program: any thread asks Python, since it is not known here which is the main thread."""
    return question(triple) + LOOPS


def _clock(triple: str) -> int:
    """The id of the cheapest monotonic clock; on Linux a coarse one, with a resolution of milliseconds."""
    return 6 if "linux" in triple or "darwin" in triple or "apple" in triple else 4
