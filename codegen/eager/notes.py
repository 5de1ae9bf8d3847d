"""The part of eager calls that adds entries to the logs of tapes, as LLVM text (see `text.py`).

It is equivalent to `noted` and `noted_pair` of `runtime/quick.py`.
"""

TEXT = """
; the number of a watched value (a new reference), or null
define internal ptr @number(ptr %log, ptr %x) nounwind {
entry:
  %numbers = field %log[NUMBERS]
  %id = call ptr @PyLong_FromVoidPtr(ptr %x)
  %failed = icmp eq ptr %id, null
  br i1 %failed, label %no, label %look
look:
  %found = call ptr @PyDict_GetItemWithError(ptr %numbers, ptr %id)
  call void @Py_DecRef(ptr %id)
  %missing = icmp eq ptr %found, null
  br i1 %missing, label %no, label %yes
yes:
  own %found
  ret ptr %found
no:
  ret ptr null
}

; what the structure says about a tensor that is not watched: `TapeLog.constant`
define internal ptr @constant(ptr %log, ptr %x, ptr %kind) nounwind {
entry:
  %constants = field %log[CONSTANTS]
  %id = call ptr @PyLong_FromVoidPtr(ptr %x)
  %no.id = icmp eq ptr %id, null
  br i1 %no.id, label %failed, label %add
add:
  %error = call i32 @PySet_Add(ptr %constants, ptr %id)
  call void @Py_DecRef(ptr %id)
  %added = icmp eq i32 %error, 0
  br i1 %added, label %shape, label %failed
shape:
  %array = field %x[BUFFER]
  %rank.at = getelementptr i8, ptr %array, i64 24
  %rank.narrow = load i32, ptr %rank.at
  %rank = zext i32 %rank.narrow to i64
  %dims = field %array[32]
  %sizes = call ptr @PyTuple_New(i64 %rank)
  %no.sizes = icmp eq ptr %sizes, null
  br i1 %no.sizes, label %failed, label %axis
axis:
  %k = phi i64 [0, %shape], [%k.next, %axis.stored]
  %more = icmp slt i64 %k, %rank
  br i1 %more, label %axis.size, label %both
axis.size:
  %n = word %dims[%k]
  %size = call ptr @PyLong_FromLongLong(i64 %n)
  %no.size = icmp eq ptr %size, null
  br i1 %no.size, label %drop, label %axis.stored
axis.stored:
  %size.at = getelementptr i8, ptr %sizes, i64 TUPLE_ITEMS
  %its = getelementptr ptr, ptr %size.at, i64 %k
  store ptr %size, ptr %its
  %k.next = add i64 %k, 1
  br label %axis
both:
  own %kind
  %out = call ptr @pair(ptr %kind, ptr %sizes, ptr null)
  ret ptr %out
drop:
  call void @Py_DecRef(ptr %sizes)
  br label %failed
failed:
  ret ptr null
}

; a tuple of one to three objects, whose references it takes: nulls at the end are left out. It drops them if there is no memory.
define internal ptr @pair(ptr %a, ptr %b, ptr %c) nounwind {
entry:
  %no.b = icmp eq ptr %b, null
  %no.c = icmp eq ptr %c, null
  %two = select i1 %no.c, i64 2, i64 3
  %n = select i1 %no.b, i64 1, i64 %two
  %out = call ptr @PyTuple_New(i64 %n)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %drop, label %fill
fill:
  %items = getelementptr i8, ptr %out, i64 TUPLE_ITEMS
  store ptr %a, ptr %items
  br i1 %no.b, label %end, label %second
second:
  %items.1 = getelementptr ptr, ptr %items, i64 1
  store ptr %b, ptr %items.1
  br i1 %no.c, label %end, label %third
third:
  %items.2 = getelementptr ptr, ptr %items, i64 2
  store ptr %c, ptr %items.2
  br label %end
drop:
  call void @dropped(ptr %a)
  call void @dropped(ptr %b)
  call void @dropped(ptr %c)
  br label %end
end:
  ret ptr %out
}

define internal void @dropped(ptr %x) nounwind {
entry:
  %none = icmp eq ptr %x, null
  br i1 %none, label %end, label %drop
drop:
  call void @Py_DecRef(ptr %x)
  br label %end
end:
  ret void
}

; appends an entry to the log, whose part of the structure is %key, and drops that; 0, or -1 after an error
define internal i32 @note(ptr %log, ptr %table, ptr %key, ptr %x, ptr %y, ptr %out) nounwind {
entry:
  %structure = field %log[STRUCTURE]
  %entries = field %log[ENTRIES]
  %numbers = field %log[NUMBERS]
  %kept = call i32 @PyList_Append(ptr %structure, ptr %key)
  call void @Py_DecRef(ptr %key)
  %key.kept = icmp eq i32 %kept, 0
  br i1 %key.kept, label %arguments, label %failed
arguments:
  own %x
  %alone = icmp eq ptr %y, null
  br i1 %alone, label %gathered, label %second
second:
  own %y
  br label %gathered
gathered:
  %args = call ptr @pair(ptr %x, ptr %y, ptr null)
  %no.args = icmp eq ptr %args, null
  br i1 %no.args, label %failed, label %results
results:
  own %out
  %outs = call ptr @pair(ptr %out, ptr null, ptr null)
  %no.outs = icmp eq ptr %outs, null
  br i1 %no.outs, label %drop, label %entered
drop:
  call void @Py_DecRef(ptr %args)
  br label %failed
entered:
  %op = item %table[OP]
  own %op
  %record = call ptr @pair(ptr %op, ptr %args, ptr %outs)
  %no.record = icmp eq ptr %record, null
  br i1 %no.record, label %failed, label %append
append:
  %appended = call i32 @PyList_Append(ptr %entries, ptr %record)
  call void @Py_DecRef(ptr %record)
  %is.appended = icmp eq i32 %appended, 0
  br i1 %is.appended, label %numbered, label %failed
numbered:
  %length = word %entries[2]
  %number = call ptr @PyLong_FromLongLong(i64 %length)
  %no.number = icmp eq ptr %number, null
  br i1 %no.number, label %failed, label %identified
identified:
  %id = call ptr @PyLong_FromVoidPtr(ptr %out)
  %no.id = icmp eq ptr %id, null
  br i1 %no.id, label %forget, label %set
forget:
  call void @Py_DecRef(ptr %number)
  br label %failed
set:
  %status = call i32 @PyDict_SetItem(ptr %numbers, ptr %id, ptr %number)
  call void @Py_DecRef(ptr %id)
  call void @Py_DecRef(ptr %number)
  ret i32 %status
failed:
  ret i32 -1
}

; the part of the structure for an op on tensors and numbers (a new reference); NOTHING if none of them is watched, DECLINED if an entry
; needs more than this, null after an error
define internal ptr @key(ptr %log, ptr %table, ptr %descr, ptr %x, ptr %y) nounwind {
entry:
  %flags = word %table[FLAGS]
  %follows = and i64 %flags, FOLLOWS
  %noted = icmp ne i64 %follows, 0
  br i1 %noted, label %kinds, label %declined
kinds:
  %x.class = field %x[8]
  %x.tensor = icmp eq ptr %x.class, @adjit_tensor_class
  %y.class = field %y[8]
  %y.tensor = icmp eq ptr %y.class, @adjit_tensor_class
  %tensors = and i1 %x.tensor, %y.tensor
  br i1 %tensors, label %look, label %mixed
mixed: ; the other operand is a number: perhaps one that was extracted from the tape
  %taken = field %log[TAKEN]
  %taken.count = word %taken[2]
  %none.taken = icmp eq i64 %taken.count, 0
  %linear = and i64 %flags, IS_LINEAR
  %is.linear = icmp ne i64 %linear, 0
  %simple = and i1 %none.taken, %is.linear
  br i1 %simple, label %look, label %declined
look:
  br i1 %x.tensor, label %x.look, label %y.too
x.look:
  %i.found = call ptr @number(ptr %log, ptr %x)
  br label %y.too
y.too:
  %i = phi ptr [null, %look], [%i.found, %x.look]
  br i1 %y.tensor, label %y.look, label %looked
y.look:
  %j.found = call ptr @number(ptr %log, ptr %y)
  br label %looked
looked:
  %j = phi ptr [null, %y.too], [%j.found, %y.look]
  %no.i = icmp eq ptr %i, null
  %no.j = icmp eq ptr %j, null
  %unwatched = and i1 %no.i, %no.j
  br i1 %unwatched, label %nothing, label %first
nothing: ; perhaps a dead end, which is noted elsewhere
  %lost = field %log[LOST]
  %lost.count = word %lost[2]
  %none.lost = icmp eq i64 %lost.count, 0
  %kept = select i1 %none.lost, ptr NOTHING, ptr DECLINED
  ret ptr %kept
first:
  br i1 %no.i, label %first.constant, label %second
first.constant:
  %i.constant = call ptr @reference(ptr %log, ptr %descr, ptr %x)
  %i.failed = icmp eq ptr %i.constant, null
  br i1 %i.failed, label %failed, label %second
second:
  %i.ref = phi ptr [%i, %first], [%i.constant, %first.constant]
  br i1 %no.j, label %second.constant, label %both
second.constant:
  %j.constant = call ptr @reference(ptr %log, ptr %descr, ptr %y)
  %j.failed = icmp eq ptr %j.constant, null
  br i1 %j.failed, label %failed, label %both
both:
  %j.ref = phi ptr [%j, %second], [%j.constant, %second.constant]
  %op.number = item %table[NUMBER]
  own %op.number
  %out = call ptr @pair(ptr %op.number, ptr %i.ref, ptr %j.ref)
  ret ptr %out
failed:
  %rest = phi ptr [%j, %first.constant], [%i.ref, %second.constant]
  call void @dropped(ptr %rest)
  ret ptr null
declined:
  ret ptr DECLINED
}

define internal ptr @reference(ptr %log, ptr %descr, ptr %x) nounwind {
entry:
  %class = field %x[8]
  %is.tensor = icmp eq ptr %class, @adjit_tensor_class
  br i1 %is.tensor, label %tensor, label %number
tensor:
  %double = icmp eq ptr %descr, @adjit_f64
  %kind = select i1 %double, ptr @adjit_f64_number, ptr @adjit_f32_number
  %out = call ptr @constant(ptr %log, ptr %x, ptr %kind)
  ret ptr %out
number:
  %none = getelementptr i8, ptr @adjit_none, i64 0
  own %none
  ret ptr %none
}

; a result as it is given to the user, with an entry in the log
define internal ptr @finished(ptr %log, ptr %table, ptr %key, ptr %x, ptr %y, ptr %array) nounwind {
entry:
  %out = call ptr @wrapped(ptr %array)
  %word = ptrtoint ptr %out to i64
  %is.made = icmp ugt i64 %word, 2
  br i1 %is.made, label %note, label %drop
note:
  %status = call i32 @note(ptr %log, ptr %table, ptr %key, ptr %x, ptr %y, ptr %out)
  %noted = icmp eq i32 %status, 0
  br i1 %noted, label %end, label %failed
failed:
  call void @Py_DecRef(ptr %out)
  ret ptr null
drop:
  call void @Py_DecRef(ptr %key)
  br label %end
end:
  ret ptr %out
}

; a ufunc of one operand, or a sum; DECLINED if it is to be computed in another way, null after an error
define internal ptr @single(ptr %table, ptr %x) nounwind {
entry:
  %place = alloca [4 x i64], align 16
  %function = item %table[FUNCTION]
  %summed = icmp eq ptr %function, @adjit_add_reduce
  %descr = call ptr @dtype(ptr %x)
  %untyped = icmp eq ptr %descr, null
  br i1 %untyped, label %declined, label %typed
typed:
  %good = call i1 @operand(ptr %x, ptr %descr, ptr %place, ptr null)
  br i1 %good, label %mode, label %declined
mode:
  %log = call ptr @its.log()
  %log.word = ptrtoint ptr %log to i64
  switch i64 %log.word, label %taped [i64 0, label %plain
                                      i64 1, label %declined]
taped:
  own %log
  %i = call ptr @number(ptr %log, ptr %x)
  %unwatched = icmp eq ptr %i, null
  br i1 %unwatched, label %alone, label %watched
alone:
  %lost = field %log[LOST]
  %lost.count = word %lost[2]
  call void @Py_DecRef(ptr %log)
  %none.lost = icmp eq i64 %lost.count, 0
  br i1 %none.lost, label %plain, label %declined
watched:
  %number = item %table[NUMBER]
  own %number
  %key = call ptr @pair(ptr %number, ptr %i, ptr null)
  %no.key = icmp eq ptr %key, null
  br i1 %no.key, label %failed, label %compute
compute:
  br i1 %summed, label %sum, label %each
sum:
  %its = field %x[BUFFER]
  %total = call ptr @silently(ptr %function, ptr %its, ptr @adjit_none)
  br label %computed
each:
  %elements = call ptr @computed(ptr %table, ptr %descr, ptr %place, ptr null)
  br label %computed
computed:
  %array = phi ptr [%total, %sum], [%elements, %each]
  %noted = call ptr @finished(ptr %log, ptr %table, ptr %key, ptr %x, ptr null, ptr %array)
  call void @Py_DecRef(ptr %log)
  ret ptr %noted
failed:
  call void @Py_DecRef(ptr %log)
  ret ptr null
plain:
  br i1 %summed, label %plain.sum, label %plain.each
plain.sum:
  %plain.its = field %x[BUFFER]
  %plain.total = call ptr @silently(ptr %function, ptr %plain.its, ptr @adjit_none)
  br label %plain.computed
plain.each:
  %plain.elements = call ptr @computed(ptr %table, ptr %descr, ptr %place, ptr null)
  br label %plain.computed
plain.computed:
  %new = phi ptr [%plain.total, %plain.sum], [%plain.elements, %plain.each]
  %out = call ptr @wrapped(ptr %new)
  ret ptr %out
declined:
  ret ptr DECLINED
}

; an operand as an entry keeps it (a new reference): the user may write to an array, so that is a copy
define internal ptr @held(ptr %log, ptr %x) nounwind {
entry:
  %class = field %x[8]
  %is.array = icmp eq ptr %class, @adjit_array_type
  br i1 %is.array, label %array, label %same
array:
  %taken = field %log[TAKEN]
  %taken.count = word %taken[2]
  %none.taken = icmp eq i64 %taken.count, 0
  br i1 %none.taken, label %copy, label %declined
copy:
  %new = call ptr @adjit_copy(ptr %x, i32 0)
  %out = call ptr @wrapped(ptr %new)
  ret ptr %out
same:
  own %x
  ret ptr %x
declined:
  ret ptr DECLINED
}

; an op of two operands while a tape is recording; NOTHING if it watches neither. Without places, it is a product.
define internal ptr @under.tape(ptr %log, ptr %table, ptr %descr, ptr %x, ptr %y, ptr %x.place, ptr %y.place) nounwind {
entry:
  own %log
  %x.held = call ptr @held(ptr %log, ptr %x)
  %x.word = ptrtoint ptr %x.held to i64
  %x.kept = icmp ugt i64 %x.word, 2
  br i1 %x.kept, label %second, label %first.end
first.end:
  call void @Py_DecRef(ptr %log)
  ret ptr %x.held
second:
  %y.held = call ptr @held(ptr %log, ptr %y)
  %y.word = ptrtoint ptr %y.held to i64
  %y.kept = icmp ugt i64 %y.word, 2
  br i1 %y.kept, label %both, label %second.end
second.end:
  call void @Py_DecRef(ptr %x.held)
  call void @Py_DecRef(ptr %log)
  ret ptr %y.held
both:
  %key = call ptr @key(ptr %log, ptr %table, ptr %descr, ptr %x.held, ptr %y.held)
  %key.word = ptrtoint ptr %key to i64
  %is.noted = icmp ugt i64 %key.word, 2
  br i1 %is.noted, label %compute, label %end
compute:
  %elementwise = icmp ne ptr %x.place, null
  br i1 %elementwise, label %loop, label %product
loop:
  %new = call ptr @computed(ptr %table, ptr %descr, ptr %x.place, ptr %y.place)
  br label %computed
product:
  %function = item %table[FUNCTION]
  %a = field %x.held[BUFFER]
  %b = field %y.held[BUFFER]
  %multiplied = call ptr @silently(ptr %function, ptr %a, ptr %b)
  br label %computed
computed:
  %array = phi ptr [%new, %loop], [%multiplied, %product]
  %noted = call ptr @finished(ptr %log, ptr %table, ptr %key, ptr %x.held, ptr %y.held, ptr %array)
  br label %end
end:
  %out = phi ptr [%key, %both], [%noted, %computed]
  call void @Py_DecRef(ptr %x.held)
  call void @Py_DecRef(ptr %y.held)
  call void @Py_DecRef(ptr %log)
  ret ptr %out
}

; a ufunc of two operands, one of which at least is a tensor
define internal ptr @double(ptr %table, ptr %x, ptr %y) nounwind {
entry:
  %x.place = alloca [4 x i64], align 16
  %y.place = alloca [4 x i64], align 16
  %x.scratch = alloca double
  %y.scratch = alloca double
  %x.descr = call ptr @dtype(ptr %x)
  %x.other = icmp eq ptr %x.descr, null
  br i1 %x.other, label %second, label %typed
second:
  %y.descr = call ptr @dtype(ptr %y)
  %y.other = icmp eq ptr %y.descr, null
  br i1 %y.other, label %declined, label %typed
typed:
  %descr = phi ptr [%x.descr, %entry], [%y.descr, %second]
  %x.good = call i1 @operand(ptr %x, ptr %descr, ptr %x.place, ptr %x.scratch)
  br i1 %x.good, label %typed.y, label %declined
typed.y:
  %y.good = call i1 @operand(ptr %y, ptr %descr, ptr %y.place, ptr %y.scratch)
  br i1 %y.good, label %mode, label %declined
mode:
  %log = call ptr @its.log()
  %log.word = ptrtoint ptr %log to i64
  switch i64 %log.word, label %taped [i64 0, label %plain
                                      i64 1, label %declined]
taped:
  %noted = call ptr @under.tape(ptr %log, ptr %table, ptr %descr, ptr %x, ptr %y, ptr %x.place, ptr %y.place)
  %unwatched = icmp eq ptr %noted, NOTHING
  br i1 %unwatched, label %plain, label %end
end:
  ret ptr %noted
plain:
  %new = call ptr @computed(ptr %table, ptr %descr, ptr %x.place, ptr %y.place)
  %out = call ptr @wrapped(ptr %new)
  ret ptr %out
declined:
  ret ptr DECLINED
}
"""
