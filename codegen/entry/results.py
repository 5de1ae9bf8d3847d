"""The part of the native entry that builds the return value of a call, as LLVM text (see `text.py`)."""

TEXT = """
; a new tensor that takes over an array; null if there is no memory
define internal ptr @wrap(ptr %array, ptr %type, ptr %record, ptr %route) nounwind {
entry:
  %tensor = call ptr @PyType_GenericAlloc(ptr %type, i64 0)
  %failed = icmp eq ptr %tensor, null
  br i1 %failed, label %none, label %fill
fill:
  %data.slot = word %route[DATA_SLOT]
  %data.at = getelementptr i8, ptr %tensor, i64 %data.slot
  store ptr %array, ptr %data.at
  %its.type = item %record[3]
  %typed = icmp ne ptr %its.type, null
  br i1 %typed, label %set.type, label %done
set.type:
  own %its.type
  %type.slot = word %route[TYPE_SLOT]
  %type.at = getelementptr i8, ptr %tensor, i64 %type.slot
  store ptr %its.type, ptr %type.at
  br label %done
done: ; a type that depends on sizes known only at the call is not set here: Python determines it when it is needed
  ret ptr %tensor
none:
  call void @Py_DecRef(ptr %array)
  ret ptr null
}

; builds a result, or a part of one, according to the next nodes; null if there is no memory. The state consists of the next node and the
; number of arrays that are in tensors already.
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
  %class = item %node[1]
  %tensor = call ptr @wrap(ptr %array, ptr %class, ptr %record, ptr %route)
  ret ptr %tensor
nothing:
  call void @Py_IncRef(ptr @adjit_none)
  ret ptr @adjit_none
tuple:
  %tuple.new = call ptr @PyTuple_New(i64 %count)
  %tuple.failed = icmp eq ptr %tuple.new, null
  br i1 %tuple.failed, label %none, label %tuple.items
tuple.items:
  %in.tuple = getelementptr i8, ptr %tuple.new, i64 TUPLE_ITEMS
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
  %keys = item %node[2]
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
"""
