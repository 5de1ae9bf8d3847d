"""The LLVM text of the native entry (see `entry.py`, which gives the capitalised words their numbers).

Two words are not LLVM's: `word p[k]` is the k-th i64 of a table, `field p[k]` the pointer at byte k of a struct. They are spelled out here,
not inlined by LLVM: a pipeline of passes for this one function was a third of the first call of a small program.
"""

from __future__ import annotations

import re

SPELLED = {
    "word": r"\1.place = getelementptr i64, ptr \2, i64 \3\n  \1 = load i64, ptr \1.place",
    "field": r"\1.place = getelementptr i8, ptr \2, i64 \3\n  \1 = load ptr, ptr \1.place",
}


def entry_ir(numbers: dict[str, int]) -> str:
    """The text, as LLVM reads it."""
    text = IR
    for name, number in numbers.items():
        text = text.replace(name, str(number))
    for word, meaning in SPELLED.items():
        text = re.sub(rf"(%\S+) = {word} (%\S+)\[(\S+)\]", meaning, text)
    return text


# offsets in the structs of CPython 3.11 to 3.13 and NumPy 2, 64 bits
IR = """
declare ptr @PyType_GenericAlloc(ptr, i64)
declare ptr @PyTuple_New(i64)
declare ptr @PyList_New(i64)
declare ptr @PyDict_New()
declare i64 @PyDict_Size(ptr)
declare ptr @PyDict_GetItem(ptr, ptr)
declare i32 @PyDict_SetItem(ptr, ptr, ptr)
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare ptr @adjit_new_array(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
@adjit_array_type = external global i8
@adjit_float_type = external global i8
@adjit_tuple_type = external global i8
@adjit_list_type = external global i8
@adjit_dict_type = external global i8
@adjit_none = external global i8
@adjit_gate = external global i64


; the data of an argument that is what its record says; null when it is not
define internal ptr @argument(ptr %object, ptr %record, ptr %route, ptr %scratch) nounwind {
entry:
  %type = field %object[8]
  %descr = load ptr, ptr %record
  %wants.float = icmp eq ptr %descr, null
  br i1 %wants.float, label %float, label %array
float:
  %is.float = icmp eq ptr %type, @adjit_float_type
  br i1 %is.float, label %unbox, label %no
unbox:
  %value.at = getelementptr i8, ptr %object, i64 16
  %value = load double, ptr %value.at
  store double %value, ptr %scratch
  ret ptr %scratch
array:
  %plain = icmp eq ptr %type, @adjit_array_type
  br i1 %plain, label %check, label %wrapped
wrapped:
  %tensor.int = word %route[8]
  %tensor = inttoptr i64 %tensor.int to ptr
  %is.tensor = icmp eq ptr %type, %tensor
  br i1 %is.tensor, label %inside, label %no
inside:
  %slot = word %route[9]
  %held = field %object[%slot]
  br label %check
check:
  %x = phi ptr [%object, %array], [%held, %inside]
  %rank.at = getelementptr i8, ptr %x, i64 24
  %rank = load i32, ptr %rank.at
  %rank.wanted = word %record[1]
  %rank.wide = sext i32 %rank to i64
  %same.rank = icmp eq i64 %rank.wide, %rank.wanted
  %its.descr = field %x[56]
  %same.descr = icmp eq ptr %its.descr, %descr
  %flags.at = getelementptr i8, ptr %x, i64 64
  %flags = load i32, ptr %flags.at
  %laid = and i32 %flags, 257
  %fine = icmp eq i32 %laid, 257
  %c1 = and i1 %same.rank, %same.descr
  %c2 = and i1 %c1, %fine
  br i1 %c2, label %shape, label %no
shape:
  %dims = field %x[32]
  %wanted.int = word %record[2]
  %wanted = inttoptr i64 %wanted.int to ptr
  br label %next
next:
  %axis = phi i64 [0, %shape], [%axis.next, %same]
  %more = icmp slt i64 %axis, %rank.wanted
  br i1 %more, label %compare, label %yes
compare:
  %n = word %dims[%axis]
  %m = word %wanted[%axis]
  %equal = icmp eq i64 %n, %m
  br i1 %equal, label %same, label %no
same:
  %axis.next = add i64 %axis, 1
  br label %next
yes:
  %data = field %x[16]
  ret ptr %data
no:
  ret ptr null
}

; an argument, or a part of one, as the next nodes say: the data of its arrays are put behind those that are in the buffers. False when
; it is something else. The state is the next node and the number of buffers.
define internal i1 @take(ptr %object, ptr %state, ptr %buffers, ptr %scratch, ptr %route) nounwind {
entry:
  %node = load ptr, ptr %state
  %next = getelementptr i64, ptr %node, i64 RECORD
  store ptr %next, ptr %state
  %type = field %object[8]
  %tag = word %node[0]
  %count = word %node[1]
  switch i64 %tag, label %leaf [i64 TUPLE, label %tuple
                                i64 LIST, label %list
                                i64 DICT, label %dict
                                i64 SAME, label %same]
leaf:
  %index.at = getelementptr i64, ptr %state, i64 1
  %index = load i64, ptr %index.at
  %scratch.at = getelementptr double, ptr %scratch, i64 %index
  %data = call ptr @argument(ptr %object, ptr %node, ptr %route, ptr %scratch.at)
  %bad = icmp eq ptr %data, null
  br i1 %bad, label %no, label %found
found:
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %index
  store ptr %data, ptr %buffer.at
  %index.next = add i64 %index, 1
  store i64 %index.next, ptr %index.at
  ret i1 true
same:
  %address = ptrtoint ptr %object to i64
  %is.same = icmp eq i64 %address, %count
  ret i1 %is.same
tuple:
  %is.tuple = icmp eq ptr %type, @adjit_tuple_type
  br i1 %is.tuple, label %tuple.items, label %no
tuple.items:
  %in.tuple = getelementptr i8, ptr %object, i64 24
  br label %sequence
list:
  %is.list = icmp eq ptr %type, @adjit_list_type
  br i1 %is.list, label %list.items, label %no
list.items:
  %in.list = field %object[24]
  br label %sequence
sequence:
  %items = phi ptr [%in.tuple, %tuple.items], [%in.list, %list.items]
  %size = word %object[2]
  %fits = icmp eq i64 %size, %count
  br i1 %fits, label %item, label %no
item:
  %i = phi i64 [0, %sequence], [%i.next, %item.fine]
  %i.more = icmp slt i64 %i, %count
  br i1 %i.more, label %item.take, label %yes
item.take:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  %its = load ptr, ptr %item.at
  %item.ok = call i1 @take(ptr %its, ptr %state, ptr %buffers, ptr %scratch, ptr %route)
  br i1 %item.ok, label %item.fine, label %no
item.fine:
  %i.next = add i64 %i, 1
  br label %item
dict:
  %is.dict = icmp eq ptr %type, @adjit_dict_type
  br i1 %is.dict, label %dict.size, label %no
dict.size:
  %entries = call i64 @PyDict_Size(ptr %object)
  %all = icmp eq i64 %entries, %count
  %keys.int = word %node[2]
  %keys = inttoptr i64 %keys.int to ptr
  br i1 %all, label %entry.next, label %no
entry.next:
  %k = phi i64 [0, %dict.size], [%k.next, %entry.fine]
  %k.more = icmp slt i64 %k, %count
  br i1 %k.more, label %entry.find, label %yes
entry.find:
  %key.at = getelementptr ptr, ptr %keys, i64 %k
  %key = load ptr, ptr %key.at
  %value = call ptr @PyDict_GetItem(ptr %object, ptr %key)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %no, label %entry.take
entry.take:
  %entry.ok = call i1 @take(ptr %value, ptr %state, ptr %buffers, ptr %scratch, ptr %route)
  br i1 %entry.ok, label %entry.fine, label %no
entry.fine:
  %k.next = add i64 %k, 1
  br label %entry.next
yes:
  ret i1 true
no:
  ret i1 false
}

; a tensor around an array, which it takes over; null when there is no memory
define internal ptr @wrap(ptr %array, ptr %record, ptr %route) nounwind {
entry:
  %type.int = word %route[8]
  %type = inttoptr i64 %type.int to ptr
  %tensor = call ptr @PyType_GenericAlloc(ptr %type, i64 0)
  %failed = icmp eq ptr %tensor, null
  br i1 %failed, label %none, label %fill
fill:
  %data.slot = word %route[9]
  %data.at = getelementptr i8, ptr %tensor, i64 %data.slot
  store ptr %array, ptr %data.at
  %its.type.int = word %record[3]
  %its.type = inttoptr i64 %its.type.int to ptr
  call void @Py_IncRef(ptr %its.type)
  %type.slot = word %route[10]
  %type.at = getelementptr i8, ptr %tensor, i64 %type.slot
  store ptr %its.type, ptr %type.at
  ret ptr %tensor
none:
  call void @Py_DecRef(ptr %array)
  ret ptr null
}

; a result, or a part of one, as the next nodes say; null when there is no memory. The state is the next node and the number of arrays that
; are in tensors already.
define internal ptr @give(ptr %state, ptr %arrays, ptr %records, ptr %route) nounwind {
entry:
  %node = load ptr, ptr %state
  %next = getelementptr i64, ptr %node, i64 RECORD
  store ptr %next, ptr %state
  %tag = word %node[0]
  %count = word %node[1]
  switch i64 %tag, label %leaf [i64 TUPLE, label %tuple
                                i64 LIST, label %list
                                i64 DICT, label %dict
                                i64 NOTHING, label %nothing]
leaf:
  %index.at = getelementptr i64, ptr %state, i64 1
  %index = load i64, ptr %index.at
  %index.next = add i64 %index, 1
  store i64 %index.next, ptr %index.at
  %array.at = getelementptr ptr, ptr %arrays, i64 %index
  %array = load ptr, ptr %array.at
  %words = mul i64 %index, RECORD
  %record = getelementptr i64, ptr %records, i64 %words
  %tensor = call ptr @wrap(ptr %array, ptr %record, ptr %route)
  ret ptr %tensor
nothing:
  call void @Py_IncRef(ptr @adjit_none)
  ret ptr @adjit_none
tuple:
  %tuple.new = call ptr @PyTuple_New(i64 %count)
  %tuple.failed = icmp eq ptr %tuple.new, null
  br i1 %tuple.failed, label %none, label %tuple.items
tuple.items:
  %in.tuple = getelementptr i8, ptr %tuple.new, i64 24
  br label %sequence
list:
  %list.new = call ptr @PyList_New(i64 %count)
  %list.failed = icmp eq ptr %list.new, null
  br i1 %list.failed, label %none, label %list.items
list.items:
  %in.list = field %list.new[24]
  br label %sequence
sequence:
  %sequence.new = phi ptr [%tuple.new, %tuple.items], [%list.new, %list.items]
  %items = phi ptr [%in.tuple, %tuple.items], [%in.list, %list.items]
  br label %item
item:
  %i = phi i64 [0, %sequence], [%i.next, %item.fine]
  %i.more = icmp slt i64 %i, %count
  br i1 %i.more, label %item.give, label %done
item.give:
  %its = call ptr @give(ptr %state, ptr %arrays, ptr %records, ptr %route)
  %item.failed = icmp eq ptr %its, null
  br i1 %item.failed, label %drop, label %item.fine
item.fine:
  %item.at = getelementptr ptr, ptr %items, i64 %i
  store ptr %its, ptr %item.at
  %i.next = add i64 %i, 1
  br label %item
dict:
  %dict.new = call ptr @PyDict_New()
  %keys.int = word %node[2]
  %keys = inttoptr i64 %keys.int to ptr
  %dict.failed = icmp eq ptr %dict.new, null
  br i1 %dict.failed, label %none, label %entry.next
entry.next:
  %k = phi i64 [0, %dict], [%k.next, %entry.fine]
  %k.more = icmp slt i64 %k, %count
  br i1 %k.more, label %entry.give, label %done
entry.give:
  %value = call ptr @give(ptr %state, ptr %arrays, ptr %records, ptr %route)
  %value.failed = icmp eq ptr %value, null
  br i1 %value.failed, label %drop, label %entry.set
entry.set:
  %key.at = getelementptr ptr, ptr %keys, i64 %k
  %key = load ptr, ptr %key.at
  %set = call i32 @PyDict_SetItem(ptr %dict.new, ptr %key, ptr %value)
  call void @Py_DecRef(ptr %value)
  %set.failed = icmp ne i32 %set, 0
  br i1 %set.failed, label %drop, label %entry.fine
entry.fine:
  %k.next = add i64 %k, 1
  br label %entry.next
done:
  %new = phi ptr [%sequence.new, %item], [%dict.new, %entry.next]
  ret ptr %new
drop:
  %partial = phi ptr [%sequence.new, %item.give], [%dict.new, %entry.give], [%dict.new, %entry.set]
  call void @Py_DecRef(ptr %partial)
  br label %none
none:
  ret ptr null
}

define ptr @adjit_entry(ptr %self, ptr %args, i64 %nargs, ptr %keywords) nounwind {
entry:
  %buffers = alloca [MAX_BUFFERS x ptr], align 16
  %arrays = alloca [MAX_BUFFERS x ptr], align 16
  %scratch = alloca [MAX_BUFFERS x double], align 16
  %state = alloca [2 x i64], align 16
  %index.at = getelementptr i64, ptr %state, i64 1
  %head = field %self[16]
  %watched = load i64, ptr @adjit_gate
  %alone = icmp eq i64 %watched, 0
  %no.keywords = icmp eq ptr %keywords, null
  %short = and i1 %alone, %no.keywords
  br i1 %short, label %first, label %python
first:
  %route.first = field %head[8]
  br label %try
try:
  %route = phi ptr [%route.first, %first], [%route.next, %other]
  %some = icmp ne ptr %route, null
  br i1 %some, label %look, label %python
other:
  %route.next = load ptr, ptr %route
  br label %try
look:
  %count = word %route[1]
  %fits = icmp eq i64 %count, %nargs
  %busy = word %route[11]
  %free = icmp eq i64 %busy, 0
  %usable = and i1 %fits, %free
  br i1 %usable, label %arguments, label %other
arguments:
  %nodes = getelementptr i64, ptr %route, i64 HEADER
  store ptr %nodes, ptr %state
  store i64 0, ptr %index.at
  br label %argument
argument:
  %i = phi i64 [0, %arguments], [%i.next, %argument.fine]
  %i.more = icmp slt i64 %i, %count
  br i1 %i.more, label %argument.take, label %variables
argument.take:
  %object.at = getelementptr ptr, ptr %args, i64 %i
  %object = load ptr, ptr %object.at
  %taken = call i1 @take(ptr %object, ptr %state, ptr %buffers, ptr %scratch, ptr %route)
  br i1 %taken, label %argument.fine, label %other
argument.fine:
  %i.next = add i64 %i, 1
  br label %argument
variables:
  %variable.records = load ptr, ptr %state
  %leaves = load i64, ptr %index.at
  %variable.count = word %route[2]
  %after.variables = add i64 %leaves, %variable.count
  br label %variable
variable:
  %v = phi i64 [%leaves, %variables], [%v.next, %variable.fine]
  %v.record = phi ptr [%variable.records, %variables], [%v.record.next, %variable.fine]
  %v.more = icmp slt i64 %v, %after.variables
  br i1 %v.more, label %variable.check, label %constants
variable.check:
  %slot.at.int = word %v.record[0]
  %slot.at = inttoptr i64 %slot.at.int to ptr
  %held = load ptr, ptr %slot.at
  %references = load i32, ptr %held
  %shared = icmp ne i32 %references, 1
  %updated = word %v.record[1]
  %writes = icmp ne i64 %updated, 0
  %must.copy = and i1 %shared, %writes
  br i1 %must.copy, label %python, label %variable.fine
variable.fine:
  %v.data = field %held[16]
  %v.buffer.at = getelementptr ptr, ptr %buffers, i64 %v
  store ptr %v.data, ptr %v.buffer.at
  %v.next = add i64 %v, 1
  %v.record.next = getelementptr i64, ptr %v.record, i64 RECORD
  br label %variable
constants:
  %constant.count = word %route[3]
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
  %result.count = word %route[4]
  br label %result
result:
  %r = phi i64 [0, %results], [%r.next, %result.fine]
  %r.record = phi ptr [%k.record, %results], [%r.record.next, %result.fine]
  %r.more = icmp slt i64 %r, %result.count
  br i1 %r.more, label %result.make, label %run
result.make:
  %descr = load ptr, ptr %r.record
  call void @Py_IncRef(ptr %descr)
  %rank.wide = word %r.record[1]
  %rank = trunc i64 %rank.wide to i32
  %dims.int = word %r.record[2]
  %dims = inttoptr i64 %dims.int to ptr
  %array = call ptr @adjit_new_array(ptr @adjit_array_type, ptr %descr, i32 %rank, ptr %dims, ptr null, ptr null, i32 0, ptr null)
  %no.array = icmp eq ptr %array, null
  br i1 %no.array, label %drop, label %result.fine
result.fine:
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
  %main = field %route[40]
  %arena = field %route[48]
  %error = field %route[56]
  %busy.at = getelementptr i64, ptr %route, i64 11
  store i64 1, ptr %busy.at
  %used.at = getelementptr i64, ptr %route, i64 13
  store i64 1, ptr %used.at
  %long = word %route[14]
  %releases = icmp ne i64 %long, 0
  br i1 %releases, label %release, label %hold
release:
  %thread = call ptr @PyEval_SaveThread()
  %code.released = call i64 %main(ptr %buffers, ptr %arena, ptr %error)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %ran
hold:
  %code.held = call i64 %main(ptr %buffers, ptr %arena, ptr %error)
  br label %ran
ran:
  %code = phi i64 [%code.released, %release], [%code.held, %hold]
  store i64 0, ptr %busy.at
  %failed = icmp ne i64 %code, 0
  br i1 %failed, label %undo, label %finish
undo:
  br label %undo.next
undo.next:
  %u = phi i64 [0, %undo], [%u.next, %undo.one]
  %u.more = icmp slt i64 %u, %result.count
  br i1 %u.more, label %undo.one, label %python
undo.one:
  %u.at = getelementptr ptr, ptr %arrays, i64 %u
  %u.array = load ptr, ptr %u.at
  call void @Py_DecRef(ptr %u.array)
  %u.next = add i64 %u, 1
  br label %undo.next
drop:
  br label %drop.next
drop.next:
  %d = phi i64 [0, %drop], [%d.next, %drop.one]
  %d.more = icmp slt i64 %d, %r
  br i1 %d.more, label %drop.one, label %give.up
drop.one:
  %d.at = getelementptr ptr, ptr %arrays, i64 %d
  %d.array = load ptr, ptr %d.at
  call void @Py_DecRef(ptr %d.array)
  %d.next = add i64 %d, 1
  br label %drop.next
give.up:
  ret ptr null
finish:
  %structure = word %route[12]
  store i64 %structure, ptr %state
  store i64 0, ptr %index.at
  %given = call ptr @give(ptr %state, ptr %arrays, ptr %k.record, ptr %route)
  ret ptr %given
python:
  %slow = load ptr, ptr %head
  %out = call ptr @PyObject_Vectorcall(ptr %slow, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %out
}
"""
