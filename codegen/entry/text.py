"""The LLVM text of the native entry (see `entry.py`, which defines the numbers for the capitalised words).

Four instructions are not LLVM's: `word p[k]` loads the k-th i64 of a table, `item p[k]` the k-th pointer of a table, `field p[k]` the
pointer at byte offset k of a struct, and `own p` takes a reference to a Python object. They are expanded here rather than inlined by LLVM,
because running LLVM's passes for this one function took a third of the first call of a small program.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping

from . import arguments as entry_arguments
from . import formulas, released
from . import results as entry_results

SPELLED = {
    "word": r"\1.place = getelementptr i64, ptr \2, i64 \3\n  \1 = load i64, ptr \1.place",
    "item": r"\1.place = getelementptr ptr, ptr \2, i64 \3\n  \1 = load ptr, ptr \1.place",
    "field": r"\1.place = getelementptr i8, ptr \2, i64 \3\n  \1 = load ptr, ptr \1.place",
}
# The count of references, in the width that CPython uses (`entry.available`): a load that is wider than the last store has to wait for it.
# From 3.12 on, immortal objects have the largest 32-bit number, which stays; from 3.14 on, one of at least 3 << 30.
IMMORTAL = -1 if sys.version_info < (3, 14) else (3 << 30) - (1 << 32)
OWN = (
    r"""%\1.count = load i64, ptr %\1
  %\1.count.more = add i64 %\1.count, 1
  store i64 %\1.count.more, ptr %\1"""
    if sys.version_info < (3, 12)
    else rf"""%\1.count = load i32, ptr %\1
  %\1.count.more = add i32 %\1.count, 1
  %\1.immortal = icmp uge i32 %\1.count, {IMMORTAL}
  %\1.count.now = select i1 %\1.immortal, i32 %\1.count, i32 %\1.count.more
  store i32 %\1.count.now, ptr %\1"""
)


def entry_ir(numbers: Mapping[str, int]) -> str:
    """The text of the entry."""
    return spelled(DECLARATIONS + entry_arguments.TEXT + formulas.TEXT + entry_results.TEXT + CALL, {**numbers, **formulas.NUMBERS})


def rare_ir(numbers: Mapping[str, int]) -> str:
    """The text of what the entry needs in long calls and after errors only.

    Quickly compiled: a few nanoseconds do not count here, and optimising it would take a fifth of the time that the entry takes.
    """
    return spelled(released.TEXT, numbers)


def spelled(text: str, numbers: Mapping[str, int]) -> str:
    """Expand the numbers and the extra instructions into LLVM text."""
    text = re.sub(r"\b[A-Z][A-Z_]+\b", lambda name: str(numbers.get(name[0], name[0])), text)
    for word, meaning in SPELLED.items():
        text = re.sub(rf"(%\S+) = {word} ([%@]\S+)\[(\S+)\]", meaning, text)
    return re.sub(r"\bown %(\S+)", OWN, text)


DECLARATIONS = """
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyTuple_New(i64)
declare ptr @PyList_New(i64)
declare ptr @PyDict_New()
declare i64 @PyDict_Size(ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare i32 @PyDict_Next(ptr, ptr, ptr, ptr)
declare i32 @PyUnicode_Compare(ptr, ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare i64 @PyLong_AsLongLongAndOverflow(ptr, ptr)
declare void @adjit_drop_each(ptr, i64)
declare i64 @adjit_run_released(ptr, ptr, ptr, i64, ptr)
declare ptr @adjit_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
@adjit_array_type = external global i8
@adjit_int_type = external global i8
@adjit_tuple_type = external global i8
@adjit_list_type = external global i8
@adjit_dict_type = external global i8
@adjit_none = external global i8
@adjit_gate = external global i64
"""

# Until the native code runs, nothing here lets other Python code run: objects cannot change as long as the GIL is held.
CALL = """
define ptr @adjit_entry(ptr %self, ptr %args, i64 %nargs, ptr %keywords) nounwind {
entry:
  %state = alloca [3 x i64], align 16
  %index.at = getelementptr i64, ptr %state, i64 1
  %head = field %self[16]
  %watched = load i64, ptr @adjit_gate
  %alone = icmp eq i64 %watched, 0
  %no.keywords = icmp eq ptr %keywords, null
  %short = and i1 %alone, %no.keywords
  br i1 %short, label %first, label %python
first:
  %routes = item %head[1]
  %any = icmp ne ptr %routes, null
  br i1 %any, label %own, label %python
own: ; routes that are replaced meanwhile live until this call is over
  %owner = item %routes[0]
  %route.count = word %routes[1]
  %most = word %routes[2] ; buffers of any route
  %words = shl i64 %most, 2
  %buffers = alloca i64, i64 %words, align 16
  %objects = getelementptr ptr, ptr %buffers, i64 %most ; the arrays of arguments and variables
  %arrays = getelementptr ptr, ptr %objects, i64 %most ; those of results
  %scratch = getelementptr ptr, ptr %arrays, i64 %most ; the values of ints
  %owner.count = load i64, ptr %owner
  %owner.more = add i64 %owner.count, 1
  store i64 %owner.more, ptr %owner
  %checks = item %routes[3]
  %checks.end = item %routes[4]
  br label %check
check: ; whether names outside of the function are still bound to the same objects as when it was traced
  %c = phi ptr [%checks, %own], [%c.next, %check.look]
  %checked = icmp eq ptr %c, %checks.end
  br i1 %checked, label %try, label %check.look
check.look:
  %place = load ptr, ptr %c
  %expected = item %c[1]
  %bound = load ptr, ptr %place
  %as.before = icmp eq ptr %bound, %expected
  %c.next = getelementptr ptr, ptr %c, i64 2
  br i1 %as.before, label %check, label %check.failed
check.failed:
  %failed.at = getelementptr i64, ptr %routes, i64 FAILED
  store i64 1, ptr %failed.at
  br label %leave
try: ; first the route of the last call with the sizes of that call: what follows from them is known
  %last.at = getelementptr i64, ptr %routes, i64 LAST
  %last = load ptr, ptr %last.at
  %some.last = icmp ne ptr %last, null
  br i1 %some.last, label %look, label %search
search:
  store ptr null, ptr %last.at
  br label %next
next:
  %t = phi i64 [0, %search], [%t.next, %other.next]
  %in.order = phi i1 [true, %search], [%in.order.next, %other.next] ; whether no route was busy: the next call may prefer that one
  %some = icmp slt i64 %t, %route.count
  br i1 %some, label %pick, label %leave
pick:
  %t.at = add i64 %t, FIRST
  %picked = item %routes[%t.at]
  br label %look
look:
  %route = phi ptr [%last, %try], [%picked, %pick]
  %is.last = phi i1 [true, %try], [false, %pick]
  %number = phi i64 [0, %try], [%t, %pick]
  %is.first = phi i1 [true, %try], [%in.order, %pick]
  %count = word %route[ARGUMENTS]
  %fits = icmp eq i64 %count, %nargs
  %busy = word %route[BUSY]
  %free = icmp eq i64 %busy, 0
  %usable = and i1 %fits, %free
  br i1 %usable, label %arguments, label %other
other:
  br i1 %is.last, label %search, label %other.next
other.next:
  %t.next = add i64 %number, 1
  %in.order.next = and i1 %is.first, %free
  br label %next
arguments:
  %symbols = word %route[SYMBOLS]
  %sizes = item %route[SIZES]
  %sizes.at = getelementptr ptr, ptr %state, i64 2
  store ptr %sizes, ptr %sizes.at
  %unknown = select i1 %is.last, i64 0, i64 %symbols
  %which = select i1 %is.last, i64 LAST_NODES, i64 NODES
  %nodes = item %route[%which]
  br label %forget
forget:
  %s = phi i64 [0, %arguments], [%s.next, %forget.one]
  %s.more = icmp slt i64 %s, %unknown
  br i1 %s.more, label %forget.one, label %argument
forget.one:
  %s.at = getelementptr i64, ptr %sizes, i64 %s
  store i64 0, ptr %s.at
  %s.next = add i64 %s, 1
  br label %forget
argument: ; the next node and the number of buffers are registers here, and go through the state only for containers
  %i = phi i64 [0, %forget], [%i.next, %argument.fine]
  %node = phi ptr [%nodes, %forget], [%node.next, %argument.fine]
  %leaves = phi i64 [0, %forget], [%leaves.next, %argument.fine]
  %i.more = icmp slt i64 %i, %count
  br i1 %i.more, label %argument.take, label %matched
argument.take:
  %object = item %args[%i]
  %tag = word %node[0]
  switch i64 %tag, label %argument.leaf [i64 TUPLE, label %argument.nested
                                         i64 LIST, label %argument.nested
                                         i64 DICT, label %argument.nested
                                         i64 SAME, label %argument.nested]
argument.leaf:
  %scratch.at = getelementptr double, ptr %scratch, i64 %leaves
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %leaves
  %object.at = getelementptr ptr, ptr %objects, i64 %leaves
  %good = call i1 @argument(ptr %object, ptr %node, ptr %route, ptr %scratch.at, ptr %buffer.at, ptr %object.at, ptr %sizes)
  %node.leaf = getelementptr i64, ptr %node, i64 RECORD
  %leaves.leaf = add i64 %leaves, 1
  br i1 %good, label %argument.fine, label %other
argument.nested:
  store ptr %node, ptr %state
  store i64 %leaves, ptr %index.at
  %taken = call i1 @take(ptr %object, ptr %state, ptr %buffers, ptr %objects, ptr %scratch, ptr %route)
  %node.nested = load ptr, ptr %state
  %leaves.nested = load i64, ptr %index.at
  br i1 %taken, label %argument.fine, label %other
argument.fine:
  %node.next = phi ptr [%node.leaf, %argument.leaf], [%node.nested, %argument.nested]
  %leaves.next = phi i64 [%leaves.leaf, %argument.leaf], [%leaves.nested, %argument.nested]
  %i.next = add i64 %i, 1
  br label %argument
matched:
  %general = icmp ne i64 %symbols, 0
  br i1 %is.last, label %variables, label %sized
sized:
  br i1 %general, label %settle, label %remember
settle:
  %accepted = call i1 @settle(ptr %route)
  br i1 %accepted, label %remember, label %other
remember:
  %remembered = select i1 %is.first, ptr %route, ptr null
  store ptr %remembered, ptr %last.at
  br label %variables
variables:
  %records = item %route[RECORDS]
  %variable.count = word %route[VARIABLES]
  %after.variables = add i64 %leaves, %variable.count
  br label %variable
variable:
  %v = phi i64 [%leaves, %variables], [%v.next, %variable.fine]
  %v.record = phi ptr [%records, %variables], [%v.record.next, %variable.fine]
  %v.more = icmp slt i64 %v, %after.variables
  br i1 %v.more, label %variable.check, label %constants
variable.check:
  %slot.at = item %v.record[0]
  %updated = word %v.record[1]
  %lock = item %v.record[2]
  %holder = word %lock[0]
  %reserved = word %lock[1]
  %claimed = or i64 %holder, %reserved
  %locked = icmp ne i64 %claimed, 0
  %held = load ptr, ptr %slot.at
  %references = load i32, ptr %held
  %shared = icmp ne i32 %references, 1
  %writes = icmp ne i64 %updated, 0
  %must.copy = and i1 %shared, %writes
  %must.wait.or.copy = or i1 %locked, %must.copy
  br i1 %must.wait.or.copy, label %leave, label %variable.fine
variable.fine:
  %v.data = field %held[16]
  %v.buffer.at = getelementptr ptr, ptr %buffers, i64 %v
  store ptr %v.data, ptr %v.buffer.at
  %v.object.at = getelementptr ptr, ptr %objects, i64 %v
  store ptr %held, ptr %v.object.at
  %v.next = add i64 %v, 1
  %v.record.next = getelementptr i64, ptr %v.record, i64 RECORD
  br label %variable
constants:
  %constant.count = word %route[CONSTANTS]
  %after.constants = add i64 %after.variables, %constant.count
  br label %constant
constant:
  %k = phi i64 [%after.variables, %constants], [%k.next, %constant.fine]
  %k.record = phi ptr [%v.record, %constants], [%k.record.next, %constant.fine]
  %k.more = icmp slt i64 %k, %after.constants
  br i1 %k.more, label %constant.fine, label %results
constant.fine:
  %k.data = load ptr, ptr %k.record
  %k.buffer.at = getelementptr ptr, ptr %buffers, i64 %k
  store ptr %k.data, ptr %k.buffer.at
  %k.next = add i64 %k, 1
  %k.record.next = getelementptr i64, ptr %k.record, i64 RECORD
  br label %constant
results:
  %result.count = word %route[RESULTS]
  br label %result
result:
  %r = phi i64 [0, %results], [%r.next, %result.fine]
  %r.record = phi ptr [%k.record, %results], [%r.record.next, %result.fine]
  %r.more = icmp slt i64 %r, %result.count
  br i1 %r.more, label %result.make, label %run
result.make:
  %descr = load ptr, ptr %r.record
  own %descr
  %rank.wide = word %r.record[1]
  %rank = trunc i64 %rank.wide to i32
  %dims = item %r.record[2]
  %pools = item %route[POOLS]
  %pooled = icmp ne ptr %pools, null
  br i1 %pooled, label %result.pool, label %result.new
result.pool: ; a large result is on a buffer to which nothing but the route refers
  %pool.first = shl i64 %r, 1
  %pool.second = or i64 %pool.first, 1
  %buffer.1 = item %pools[%pool.first]
  %buffer.2 = item %pools[%pool.second]
  %has.pool = icmp ne ptr %buffer.1, null
  br i1 %has.pool, label %result.one, label %result.new
result.one:
  %count.1 = load i32, ptr %buffer.1
  %free.1 = icmp eq i32 %count.1, 1
  br i1 %free.1, label %result.reuse, label %result.other
result.other:
  %count.2 = load i32, ptr %buffer.2
  %free.2 = icmp eq i32 %count.2, 1
  br i1 %free.2, label %result.reuse, label %result.new
result.reuse:
  %pool.buffer = phi ptr [%buffer.1, %result.one], [%buffer.2, %result.other]
  %pool.memory = field %pool.buffer[16]
  %reusing = call ptr @adjit_new_array(ptr @adjit_array_type, ptr %descr, i32 %rank, ptr %dims,
                                       ptr null, ptr %pool.memory, i32 WRITEABLE, ptr null)
  %not.reusing = icmp eq ptr %reusing, null
  br i1 %not.reusing, label %no.memory, label %result.based
result.based:
  own %pool.buffer
  %base.at = getelementptr i8, ptr %reusing, i64 48
  store ptr %pool.buffer, ptr %base.at
  br label %result.fine
result.new:
  %fresh = call ptr @adjit_new_array(ptr @adjit_array_type, ptr %descr, i32 %rank, ptr %dims, ptr null, ptr null, i32 0, ptr null)
  %no.array = icmp eq ptr %fresh, null
  br i1 %no.array, label %no.memory, label %result.fine
result.fine:
  %array = phi ptr [%reusing, %result.based], [%fresh, %result.new]
  %array.at = getelementptr ptr, ptr %arrays, i64 %r
  store ptr %array, ptr %array.at
  %r.data = field %array[16]
  %r.position = add i64 %after.constants, %r
  %r.buffer.at = getelementptr ptr, ptr %buffers, i64 %r.position
  store ptr %r.data, ptr %r.buffer.at
  %r.next = add i64 %r, 1
  %r.record.next = getelementptr i64, ptr %r.record, i64 RECORD
  br label %result
run:
  %used.at = getelementptr i64, ptr %route, i64 USED
  store i64 1, ptr %used.at
  br i1 %general, label %run.general, label %run.any
run.general:
  %own.index = word %route[SIZES_AT]
  %own.sizes = getelementptr i64, ptr %buffers, i64 %own.index
  %record = item %route[DETAILS]
  %quiet.at = getelementptr i64, ptr %record, i64 QUIET
  store i64 1, ptr %quiet.at
  br label %copy
copy: ; another call may change those of the route while this one runs
  %z = phi i64 [0, %run.general], [%z.next, %copy.one]
  %own.at = getelementptr i64, ptr %own.sizes, i64 %z
  %z.more = icmp slt i64 %z, %symbols
  br i1 %z.more, label %copy.one, label %copied
copy.one:
  %z.size = word %sizes[%z]
  store i64 %z.size, ptr %own.at
  %z.next = add i64 %z, 1
  br label %copy
copied:
  %capacity = word %route[CAPACITY]
  store i64 %capacity, ptr %own.at
  %checked.at = getelementptr i64, ptr %own.at, i64 1
  store i64 0, ptr %checked.at ; native code checks that the sizes do not overflow
  br label %run.any
run.any:
  %long = word %route[LONG]
  %releases = icmp ne i64 %long, 0
  br i1 %releases, label %released, label %quick
released:
  %code.released = call i64 @adjit_run_released(ptr %route, ptr %buffers, ptr %objects, i64 %after.variables, ptr %records)
  br label %ran
quick: ; the GIL is held, which the error record says; for programs that are always quick, it was set when the route was created
  %main = item %route[MAIN]
  %arena = item %route[ARENA]
  %error = item %route[DETAILS]
  %code.quick = call i64 %main(ptr %buffers, ptr %arena, ptr %error)
  br label %ran
ran:
  %code = phi i64 [%code.released, %released], [%code.quick, %quick]
  switch i64 %code, label %failed [i64 0, label %finish
                                   i64 TOO_SMALL, label %small
                                   i64 INTERRUPTED, label %interrupted]
small: ; Python makes the call with a larger arena, and then gives the route one of that size
  %lacking.at = getelementptr i64, ptr %route, i64 LACKING
  store i64 1, ptr %lacking.at
  br label %failed
failed: ; nothing has changed: Python makes the call again, and raises the error
  call void @adjit_drop_each(ptr %arrays, i64 %result.count)
  br label %leave
interrupted:
  call void @adjit_drop_each(ptr %arrays, i64 %result.count)
  %details = item %route[DETAILS]
  %exception.at = getelementptr i64, ptr %details, i64 RAISED
  %exception.type = item %exception.at[0]
  %exception.value = item %exception.at[1]
  %exception.traceback = item %exception.at[2]
  call void @PyErr_Restore(ptr %exception.type, ptr %exception.value, ptr %exception.traceback)
  br label %give.up
no.memory:
  call void @adjit_drop_each(ptr %arrays, i64 %r)
  br label %give.up
give.up:
  call void @Py_DecRef(ptr %owner)
  ret ptr null
finish:
  %structure = item %route[STRUCTURE]
  %kind = word %structure[0]
  %one = icmp eq i64 %kind, ARRAY
  br i1 %one, label %give.one, label %give.several
give.one:
  %only = load ptr, ptr %arrays
  %only.class = item %structure[1]
  %given.one = call ptr @wrap(ptr %only, ptr %only.class, ptr %k.record, ptr %route)
  br label %gave
give.several:
  store ptr %structure, ptr %state
  store i64 0, ptr %index.at
  %given.several = call ptr @give(ptr %state, ptr %arrays, ptr %k.record, ptr %route)
  br label %gave
gave:
  %given = phi ptr [%given.one, %give.one], [%given.several, %give.several]
  %owner.now = load i64, ptr %owner
  %owner.last = icmp eq i64 %owner.now, 1
  br i1 %owner.last, label %free.owner, label %keep.owner
keep.owner:
  %owner.less = sub i64 %owner.now, 1
  store i64 %owner.less, ptr %owner
  ret ptr %given
free.owner:
  call void @Py_DecRef(ptr %owner)
  ret ptr %given
leave:
  call void @Py_DecRef(ptr %owner)
  br label %python
python:
  %slow = load ptr, ptr %head
  %out = call ptr @PyObject_Vectorcall(ptr %slow, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %out
}
"""
