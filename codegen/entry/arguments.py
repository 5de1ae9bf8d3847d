"""The part of the native entry that unpacks arguments, as LLVM text (see `text.py`).

The offsets are those of CPython 3.11 to 3.14 and NumPy 2 on 64-bit platforms; `entry.available` checks them. Nothing here runs Python code
or takes references: the GIL is held, so the objects cannot change meanwhile.
"""

TEXT = """
; whether an argument matches its record; if so, stores the address of its data in %buffer and the object (null for an int) in %array.at
define internal i1 @argument(ptr %object, ptr %record, ptr %route, ptr %scratch, ptr %buffer, ptr %array.at, ptr %sizes) nounwind {
entry:
  %too.large.at = alloca i32
  %type = field %object[8]
  %descr = load ptr, ptr %record
  %wants.number = icmp eq ptr %descr, null
  br i1 %wants.number, label %python, label %array
python: ; a Python number: the record has its class, and the dtype of tensors that stand for one
  %class = item %record[1]
  %is.number = icmp eq ptr %type, %class
  br i1 %is.number, label %value, label %weak
weak:
  %weak.class = item %route[WEAK_CLASS]
  %is.weak = icmp eq ptr %type, %weak.class
  br i1 %is.weak, label %weak.inside, label %no
weak.inside:
  %weak.slot = word %route[DATA_SLOT]
  %weak.held = field %object[%weak.slot]
  %weak.rank.at = getelementptr i8, ptr %weak.held, i64 24
  %weak.rank = load i32, ptr %weak.rank.at
  %weak.descr = field %weak.held[56]
  %its.dtype = item %record[2]
  %is.point = icmp eq i32 %weak.rank, 0
  %is.its = icmp eq ptr %weak.descr, %its.dtype
  %weak.flags.at = getelementptr i8, ptr %weak.held, i64 64
  %weak.flags = load i32, ptr %weak.flags.at
  %weak.laid = and i32 %weak.flags, 257
  %weak.fine = icmp eq i32 %weak.laid, 257
  %fits.number = and i1 %is.point, %is.its
  %stands = and i1 %fits.number, %weak.fine
  br i1 %stands, label %weak.yes, label %no
weak.yes:
  %weak.data = field %weak.held[16]
  store ptr %weak.data, ptr %buffer
  store ptr %weak.held, ptr %array.at
  ret i1 true
value:
  %is.int = icmp eq ptr %type, @adjit_int_type
  br i1 %is.int, label %integer, label %inside.object
integer:
  store i32 0, ptr %too.large.at
  %int = call i64 @PyLong_AsLongLongAndOverflow(ptr %object, ptr %too.large.at)
  %too.large = load i32, ptr %too.large.at
  %is.word = icmp eq i32 %too.large, 0
  br i1 %is.word, label %unboxed, label %no
unboxed:
  store i64 %int, ptr %scratch
  store ptr %scratch, ptr %buffer
  store ptr null, ptr %array.at
  ret i1 true
inside.object: ; floats, complex numbers and NumPy's scalars have their value behind the header, and never change
  %value.at = getelementptr i8, ptr %object, i64 16
  store ptr %value.at, ptr %buffer
  store ptr %object, ptr %array.at
  ret i1 true
array:
  %plain = icmp eq ptr %type, @adjit_array_type
  br i1 %plain, label %check, label %wrapped
wrapped:
  %tensor = item %route[TENSOR_CLASS]
  %is.tensor = icmp eq ptr %type, %tensor
  br i1 %is.tensor, label %inside, label %scalar
scalar:
  %scalar.class = item %record[3] ; the class of NumPy scalars accepted in place of an array without axes, or null
  %is.scalar = icmp eq ptr %type, %scalar.class
  br i1 %is.scalar, label %inside.object, label %no
inside:
  %slot = word %route[DATA_SLOT]
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
  %wanted = item %record[2]
  br label %next
next:
  %axis = phi i64 [0, %shape], [%axis.next, %same]
  %more = icmp slt i64 %axis, %rank.wanted
  br i1 %more, label %compare, label %yes
compare:
  %n = word %dims[%axis]
  %m = word %wanted[%axis]
  %equal = icmp eq i64 %n, %m
  br i1 %equal, label %same, label %other
other: ; a negative number stands for a size that is known only at each call: ~0 for the first one
  %symbolic = icmp slt i64 %m, 0
  br i1 %symbolic, label %symbol, label %no
symbol: ; the size is stored behind the table, where calls with the same sizes find it
  %last.axis = add i64 %axis, %rank.wanted
  %last.at = getelementptr i64, ptr %wanted, i64 %last.axis
  store i64 %n, ptr %last.at
  %number = xor i64 %m, -1
  %size.at = getelementptr i64, ptr %sizes, i64 %number
  %size = load i64, ptr %size.at
  %unknown = icmp eq i64 %size, 0
  br i1 %unknown, label %range, label %known
known:
  %agrees = icmp eq i64 %size, %n
  br i1 %agrees, label %same, label %no
range:
  %ranges = item %route[RANGES]
  %low.at = shl i64 %number, 1
  %high.at = or i64 %low.at, 1
  %low = word %ranges[%low.at]
  %high = word %ranges[%high.at]
  %not.small = icmp sge i64 %n, %low
  %not.large = icmp sle i64 %n, %high
  %in.range = and i1 %not.small, %not.large
  br i1 %in.range, label %learn, label %no
learn:
  store i64 %n, ptr %size.at
  br label %same
same:
  %axis.next = add i64 %axis, 1
  br label %next
yes:
  %data = field %x[16]
  store ptr %data, ptr %buffer
  store ptr %x, ptr %array.at
  ret i1 true
no:
  ret i1 false
}

; matches an argument, or a part of one, with the next nodes, and appends its arrays to the buffers; false if it does not match. The state
; consists of the next node, the number of buffers, and the address for the sizes that are known only at each call.
define internal i1 @take(ptr %object, ptr %state, ptr %buffers, ptr %objects, ptr %scratch, ptr %route) nounwind {
entry:
  %place = alloca [2 x i64], align 16 ; a position in a dict, and the key there
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
  %buffer.at = getelementptr ptr, ptr %buffers, i64 %index
  %array.at = getelementptr ptr, ptr %objects, i64 %index
  %sizes.at = getelementptr ptr, ptr %state, i64 2
  %sizes = load ptr, ptr %sizes.at
  %good = call i1 @argument(ptr %object, ptr %node, ptr %route, ptr %scratch.at, ptr %buffer.at, ptr %array.at, ptr %sizes)
  br i1 %good, label %found, label %no
found:
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
  %in.tuple = getelementptr i8, ptr %object, i64 TUPLE_ITEMS
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
  %item.ok = call i1 @take(ptr %its, ptr %state, ptr %buffers, ptr %objects, ptr %scratch, ptr %route)
  br i1 %item.ok, label %item.fine, label %no
item.fine:
  %i.next = add i64 %i, 1
  br label %item
dict:
  %is.dict = icmp eq ptr %type, @adjit_dict_type
  br i1 %is.dict, label %dict.kind, label %no
dict.kind: ; if all keys are plain strings, looking one up runs no Python code
  %table = field %object[DICT_KEYS]
  %kind.at = getelementptr i8, ptr %table, i64 KEYS_KIND
  %kind = load i8, ptr %kind.at
  %strings = icmp ne i8 %kind, 0
  br i1 %strings, label %dict.size, label %no
dict.size:
  %entries = call i64 @PyDict_Size(ptr %object)
  %all = icmp eq i64 %entries, %count
  %keys = item %node[2]
  %order = item %node[3]
  %key.place = getelementptr i64, ptr %place, i64 1
  store i64 0, ptr %place
  br i1 %all, label %order.next, label %no
order.next: ; a function may iterate over the dict: its keys are in the order of the traced one
  %o = phi i64 [0, %dict.size], [%o.next, %order.fine]
  %o.more = icmp slt i64 %o, %count
  br i1 %o.more, label %order.look, label %entry.next
order.look:
  %there = call i32 @PyDict_Next(ptr %object, ptr %place, ptr %key.place, ptr null)
  %o.key = load ptr, ptr %key.place
  %o.wanted = item %order[%o]
  %identical = icmp eq ptr %o.key, %o.wanted
  br i1 %identical, label %order.fine, label %order.compare
order.compare:
  %comparison = call i32 @PyUnicode_Compare(ptr %o.key, ptr %o.wanted)
  %equal.keys = icmp eq i32 %comparison, 0
  br i1 %equal.keys, label %order.fine, label %no
order.fine:
  %o.next = add i64 %o, 1
  br label %order.next
entry.next:
  %k = phi i64 [0, %order.next], [%k.next, %entry.fine]
  %k.more = icmp slt i64 %k, %count
  br i1 %k.more, label %entry.find, label %yes
entry.find:
  %key.at = getelementptr ptr, ptr %keys, i64 %k
  %key = load ptr, ptr %key.at
  %value = call ptr @PyDict_GetItem(ptr %object, ptr %key)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %no, label %entry.take
entry.take:
  %entry.ok = call i1 @take(ptr %value, ptr %state, ptr %buffers, ptr %objects, ptr %scratch, ptr %route)
  br i1 %entry.ok, label %entry.fine, label %no
entry.fine:
  %k.next = add i64 %k, 1
  br label %entry.next
yes:
  ret i1 true
no:
  ret i1 false
}
"""
