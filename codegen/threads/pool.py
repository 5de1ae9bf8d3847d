"""A thread pool in LLVM IR.

`adjit_parallel(fn, arg, chunks, error, threads)` runs fn(arg, chunk, worker) for every chunk on that many threads, with workers numbered
from 0; `adjit_serial` does the same on one thread. With an error record, they check for signals before each chunk, and skip the remaining
chunks if there is one.

Chunks are claimed from one atomic word (epoch, end, next), so the caller never waits for a thread that has not started a chunk: the pool
also works without workers (on a machine without futexes, or while another thread is using it). The caller claims the first chunk that is
left, workers the last one: in consecutive jobs over the same rows, a thread mostly finds in its own cache what it wrote before. What a job
is, and the words that workers watch, share a line of the cache, which is thus sent once. A forked child has no workers until it runs
chunks. Workers spin for a while, pausing now and then, and sleep in the kernel if there is nothing to do. Results do not depend on which
thread runs a chunk: chunks are cut by size, not by the number of threads.
"""

from __future__ import annotations

from adjit.ir.target import Target

from ..interrupts.signals import look_ir

FUTEX = {"x86_64": 202, "aarch64": 98}  # system call number
PAUSE = {"x86_64": "call void @llvm.x86.sse2.pause()", "aarch64": "call void @llvm.aarch64.hint(i32 1)"}
SPINS = 16_000  # looks at the job before a thread sleeps: these take less than 100 microseconds
PAUSES = 32  # polls per pause: hypervisors deschedule a virtual core that pauses repeatedly within a hundred cycles
MAX_CHUNKS = 65535


def has_threads(triple: str) -> bool:
    return triple.split("-")[0] in FUTEX and "linux" in triple


def pool_ir(target: Target) -> str:
    """The text of the pool; on systems without threads, a serial loop of the same name. Without Python, there are no checks for signals."""
    triple = target.triple
    machine, look = triple.split("-")[0], look_ir(triple) if target.hosted else BLIND
    if not has_threads(triple):
        return look + ALONE + SERIAL
    declares = "declare void @llvm.x86.sse2.pause()" if machine == "x86_64" else "declare void @llvm.aarch64.hint(i32)"
    wanted = 0 if target.hosted else target.threads - 1  # in Python, they are started when a program is loaded
    text = POOL.replace("@WANTED", str(wanted)).replace("@SPINS", str(SPINS)).replace("@RARELY", str(PAUSES - 1))
    text = text.replace("@FUTEX", str(FUTEX[machine])).replace("@PAUSE", PAUSE[machine])
    return f"{look}{ALONE}{text}{declares}\n"


BLIND = """
define internal i1 @adjit_look(ptr %error) nounwind {
  ret i1 false
}
"""

ALONE = """
define void @adjit_serial(ptr %fn, ptr %arg, i64 %chunks, ptr %error, i64 %threads) nounwind {
entry:
  %some = icmp sgt i64 %chunks, 0
  %looks = icmp ne ptr %error, null
  br i1 %some, label %loop, label %done
loop:
  %chunk = phi i64 [0, %entry], [%next, %run]
  br i1 %looks, label %look, label %run
look:
  %stop = call i1 @adjit_look(ptr %error)
  br i1 %stop, label %done, label %run
run:
  call void %fn(ptr %arg, i64 %chunk, i64 0)
  %next = add i64 %chunk, 1
  %more = icmp slt i64 %next, %chunks
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

SERIAL = """
define i32 @adjit_pool_start(i32 %workers) nounwind {
  ret i32 0
}
define void @adjit_pool_forked() nounwind {
  ret void
}
define void @adjit_parallel(ptr %fn, ptr %arg, i64 %chunks, ptr %error, i64 %threads) nounwind {
  call void @adjit_serial(ptr %fn, ptr %arg, i64 %chunks, ptr %error, i64 %threads)
  ret void
}
"""

POOL = """
@pool.job = internal global [8 x i64] zeroinitializer, align 64 ; state, epoch, function, argument, threads, error record, chunks
@pool.finished = internal global i32 0, align 64
@pool.sleepers = internal global i32 0, align 64
@pool.waiting = internal global i32 0, align 64
@pool.busy = internal global i32 0, align 64
@pool.workers = internal global i32 0, align 64
@pool.wanted = internal global i32 @WANTED, align 64 ; workers that there should be: a forked child has none until it needs them
@pool.starting = internal global i32 0, align 64
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)

; take and run one chunk; false when none is left
define internal i1 @pool.take(i64 %worker) nounwind {
entry:
  br label %look
look:
  %seen = load atomic i64, ptr @pool.job acquire, align 8
  %next = and i64 %seen, 65535
  %shifted = lshr i64 %seen, 16
  %end = and i64 %shifted, 65535
  %left = icmp ult i64 %next, %end
  br i1 %left, label %try, label %none
try:
  %fn.at = getelementptr ptr, ptr @pool.job, i64 2
  %fn = load ptr, ptr %fn.at
  %arg.at = getelementptr ptr, ptr @pool.job, i64 3
  %arg = load ptr, ptr %arg.at
  %threads.at = getelementptr ptr, ptr @pool.job, i64 4
  %threads = load i64, ptr %threads.at
  %error.at = getelementptr ptr, ptr @pool.job, i64 5
  %error = load ptr, ptr %error.at
  %count.at = getelementptr ptr, ptr @pool.job, i64 6
  %count = load i64, ptr %count.at
  %asked = icmp slt i64 %worker, %threads
  br i1 %asked, label %claim, label %none
claim:
  %is.caller = icmp eq i64 %worker, 0
  %change = select i1 %is.caller, i64 1, i64 -65536
  %last.left = sub i64 %end, 1
  %chunk = select i1 %is.caller, i64 %next, i64 %last.left
  %taken = add i64 %seen, %change
  %swap = cmpxchg ptr @pool.job, i64 %seen, i64 %taken acq_rel acquire
  %mine = extractvalue {i64, i1} %swap, 1
  br i1 %mine, label %may.look, label %look
may.look:
  %looks = icmp ne ptr %error, null
  br i1 %looks, label %ask, label %run
ask:
  %stop = call i1 @adjit_look(ptr %error)
  br i1 %stop, label %finish, label %run
run:
  call void %fn(ptr %arg, i64 %chunk, i64 %worker)
  br label %finish
finish:
  %before = atomicrmw add ptr @pool.finished, i32 1 seq_cst
  %done = add i32 %before, 1
  %all = trunc i64 %count to i32
  %last = icmp eq i32 %done, %all
  br i1 %last, label %tell, label %some
tell:
  %asleep = load atomic i32, ptr @pool.waiting seq_cst, align 4
  %wake = icmp ne i32 %asleep, 0
  br i1 %wake, label %call, label %some
call:
  %woken = call i64 (i64, ...) @syscall(i64 @FUTEX, ptr @pool.finished, i64 129, i32 1, ptr null, ptr null, i64 0)
  br label %some
some:
  ret i1 true
none:
  ret i1 false
}

define internal ptr @pool.worker(ptr %number) nounwind {
entry:
  %worker = ptrtoint ptr %number to i64
  %epoch.at = getelementptr i64, ptr @pool.job, i64 1
  br label %spin
spin:
  %turns = phi i64 [0, %entry], [0, %worked], [%more, %idle], [0, %sleep]
  %epoch = load atomic i32, ptr %epoch.at acquire, align 4
  %did = call i1 @pool.take(i64 %worker)
  br i1 %did, label %worked, label %rest
worked:
  br label %spin
rest:
  %more = add i64 %turns, 1
  %phase = and i64 %more, @RARELY
  %breathes = icmp eq i64 %phase, 0
  br i1 %breathes, label %breathe, label %count
breathe:
  @PAUSE
  br label %count
count:
  %again = icmp slt i64 %more, @SPINS
  br i1 %again, label %idle, label %sleep
idle:
  br label %spin
sleep:
  %in = atomicrmw add ptr @pool.sleepers, i32 1 seq_cst
  %slept = call i64 (i64, ...) @syscall(i64 @FUTEX, ptr %epoch.at, i64 128, i32 %epoch, ptr null, ptr null, i64 0)
  %out = atomicrmw sub ptr @pool.sleepers, i32 1 seq_cst
  br label %spin
}

; start workers until there are that many, unless another thread is doing so; returns how many there are
define i32 @adjit_pool_start(i32 %wanted) nounwind {
entry:
  %thread = alloca i64
  %before = atomicrmw max ptr @pool.wanted, i32 %wanted seq_cst
  %turn = cmpxchg ptr @pool.starting, i32 0, i32 1 acq_rel acquire
  %mine = extractvalue {i32, i1} %turn, 1
  br i1 %mine, label %next, label %leave
next:
  %have = load i32, ptr @pool.workers
  %short = icmp slt i32 %have, %wanted
  br i1 %short, label %start, label %done
start:
  %number = add i32 %have, 1
  %wide = zext i32 %number to i64
  %as.pointer = inttoptr i64 %wide to ptr
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @pool.worker, ptr %as.pointer)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %counted, label %done
counted:
  store i32 %number, ptr @pool.workers
  br label %next
done:
  store atomic i32 0, ptr @pool.starting release, align 4
  br label %leave
leave:
  %final = load i32, ptr @pool.workers
  ret i32 %final
}

; in the child of a fork: no worker is there, and no job of another thread
define void @adjit_pool_forked() nounwind {
  store i64 0, ptr @pool.job
  store i32 0, ptr @pool.finished
  store i32 0, ptr @pool.sleepers
  store i32 0, ptr @pool.waiting
  store i32 0, ptr @pool.workers
  store i32 0, ptr @pool.starting
  store i32 0, ptr @pool.busy
  ret void
}

define void @adjit_parallel(ptr %fn, ptr %arg, i64 %chunks, ptr %error, i64 %threads) nounwind {
entry:
  %several = icmp sgt i64 %chunks, 1
  %few = icmp sle i64 %chunks, 65535
  %cut = and i1 %several, %few
  br i1 %cut, label %claim, label %alone
claim:
  %held = cmpxchg ptr @pool.busy, i32 0, i32 1 acq_rel acquire
  %free = extractvalue {i32, i1} %held, 1
  br i1 %free, label %count, label %alone
count:
  %have = load i32, ptr @pool.workers
  %wanted = load i32, ptr @pool.wanted
  %missing = icmp slt i32 %have, %wanted
  br i1 %missing, label %start, label %publish
start:
  %started = call i32 @adjit_pool_start(i32 %wanted)
  br label %publish
alone:
  call void @adjit_serial(ptr %fn, ptr %arg, i64 %chunks, ptr %error, i64 %threads)
  ret void
publish:
  %fn.at = getelementptr ptr, ptr @pool.job, i64 2
  store ptr %fn, ptr %fn.at
  %arg.at = getelementptr ptr, ptr @pool.job, i64 3
  store ptr %arg, ptr %arg.at
  %threads.at = getelementptr ptr, ptr @pool.job, i64 4
  store i64 %threads, ptr %threads.at
  %error.at = getelementptr ptr, ptr @pool.job, i64 5
  store ptr %error, ptr %error.at
  %count.at = getelementptr ptr, ptr @pool.job, i64 6
  store i64 %chunks, ptr %count.at
  store atomic i32 0, ptr @pool.finished release, align 4
  %epoch.at = getelementptr i64, ptr @pool.job, i64 1
  %epoch = atomicrmw add ptr %epoch.at, i32 1 seq_cst
  %following = add i32 %epoch, 1
  %wide = zext i32 %following to i64
  %high = shl i64 %wide, 32
  %middle = shl i64 %chunks, 16
  %state = or i64 %high, %middle
  store atomic i64 %state, ptr @pool.job seq_cst, align 8
  %asleep = load atomic i32, ptr @pool.sleepers seq_cst, align 4
  %wake = icmp ne i32 %asleep, 0
  br i1 %wake, label %call, label %work
call:
  %woken = call i64 (i64, ...) @syscall(i64 @FUTEX, ptr %epoch.at, i64 129, i32 2147483647, ptr null, ptr null, i64 0)
  br label %work
work:
  %did = call i1 @pool.take(i64 0)
  br i1 %did, label %work, label %wait.first
wait.first:
  %all = trunc i64 %chunks to i32
  br label %wait
wait:
  %turns = phi i64 [0, %wait.first], [%turned, %patience]
  %finished = load atomic i32, ptr @pool.finished acquire, align 4
  %over = icmp eq i32 %finished, %all
  br i1 %over, label %release, label %pause
pause:
  %turned = add i64 %turns, 1
  %phase = and i64 %turned, @RARELY
  %breathes = icmp eq i64 %phase, 0
  br i1 %breathes, label %breathe, label %patience
breathe:
  @PAUSE
  br label %patience
patience:
  %tired = icmp sgt i64 %turned, @SPINS
  br i1 %tired, label %doze, label %wait
doze:
  store atomic i32 1, ptr @pool.waiting seq_cst, align 4
  %now = load atomic i32, ptr @pool.finished seq_cst, align 4
  %ready = icmp eq i32 %now, %all
  br i1 %ready, label %up, label %sleep
sleep:
  %slept = call i64 (i64, ...) @syscall(i64 @FUTEX, ptr @pool.finished, i64 128, i32 %now, ptr null, ptr null, i64 0)
  br label %doze
up:
  store atomic i32 0, ptr @pool.waiting seq_cst, align 4
  br label %release
release:
  store atomic i32 0, ptr @pool.busy release, align 4
  ret void
}
"""
