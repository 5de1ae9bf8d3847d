"""The part of eager calls that makes views: indices and transposes, as LLVM text (see `text.py`)."""

TEXT = """
; the array of a tensor, while no tape is recording; null if it is something else
define internal ptr @viewed(ptr %x) nounwind {
entry:
  %class = field %x[8]
  %is.tensor = icmp eq ptr %class, @adjit_tensor_class
  br i1 %is.tensor, label %mode, label %no
mode:
  %log = call ptr @its.log()
  %free = icmp eq ptr %log, null
  br i1 %free, label %yes, label %no
yes:
  %array = field %x[BUFFER]
  ret ptr %array
no:
  ret ptr null
}

; whether an object is an int or None
define internal i1 @is.bound(ptr %x) nounwind {
entry:
  %class = field %x[8]
  %is.int = icmp eq ptr %class, @adjit_int_type
  %is.none = icmp eq ptr %x, @adjit_none
  %yes = or i1 %is.int, %is.none
  ret i1 %yes
}

; whether an object is a part of an index that selects a view: an int, None, an ellipsis, or a slice between ints
define internal i1 @is.place(ptr %x) nounwind {
entry:
  %bound = call i1 @is.bound(ptr %x)
  %dots = icmp eq ptr %x, @adjit_ellipsis
  %plain = or i1 %bound, %dots
  br i1 %plain, label %yes, label %maybe
maybe:
  %class = field %x[8]
  %is.slice = icmp eq ptr %class, @adjit_slice_type
  br i1 %is.slice, label %slice, label %no
slice:
  %start = field %x[16]
  %stop = field %x[24]
  %step = field %x[32]
  %b1 = call i1 @is.bound(ptr %start)
  %b2 = call i1 @is.bound(ptr %stop)
  %b3 = call i1 @is.bound(ptr %step)
  %c1 = and i1 %b1, %b2
  %c2 = and i1 %c1, %b3
  ret i1 %c2
yes:
  ret i1 true
no:
  ret i1 false
}

define ptr @adjit_item(ptr %self, ptr %key) nounwind {
entry:
  %overflow = alloca i32
  %array = call ptr @viewed(ptr %self)
  %other = icmp eq ptr %array, null
  br i1 %other, label %python, label %key.class
key.class:
  %class = field %key[8]
  %is.int = icmp eq ptr %class, @adjit_int_type
  br i1 %is.int, label %int, label %several
int: ; an element of a vector
  %rank.at = getelementptr i8, ptr %array, i64 24
  %rank = load i32, ptr %rank.at
  %vector = icmp eq i32 %rank, 1
  %descr = field %array[56]
  %double = icmp eq ptr %descr, @adjit_f64
  %single = icmp eq ptr %descr, @adjit_f32
  %float = or i1 %double, %single
  %element = and i1 %vector, %float
  br i1 %element, label %number, label %view
number:
  store i32 0, ptr %overflow
  %given = call i64 @PyLong_AsLongLongAndOverflow(ptr %key, ptr %overflow)
  %large = load i32, ptr %overflow
  %fits = icmp eq i32 %large, 0
  %dims = field %array[32]
  %n = load i64, ptr %dims
  %negative = icmp slt i64 %given, 0
  %from.end = add i64 %given, %n
  %index = select i1 %negative, i64 %from.end, i64 %given
  %inside = icmp ult i64 %index, %n
  %good = and i1 %fits, %inside
  br i1 %good, label %make, label %python
make:
  own %descr
  %out = call ptr @adjit_new_array(ptr @adjit_array_type, ptr %descr, i32 0, ptr null, ptr null, ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %done, label %copy
copy:
  %data = field %array[16]
  %strides = field %array[40]
  %stride = load i64, ptr %strides
  %offset = mul i64 %index, %stride
  %from = getelementptr i8, ptr %data, i64 %offset
  %to = field %out[16]
  br i1 %double, label %copy.8, label %copy.4
copy.8:
  %eight = load i64, ptr %from, align 1
  store i64 %eight, ptr %to
  br label %done
copy.4:
  %four = load i32, ptr %from, align 1
  store i32 %four, ptr %to
  br label %done
done:
  %tensor = call ptr @wrapped(ptr %out)
  ret ptr %tensor
several:
  %is.tuple = icmp eq ptr %class, @adjit_tuple_type
  br i1 %is.tuple, label %parts, label %alone
alone:
  %fine = call i1 @is.place(ptr %key)
  br i1 %fine, label %view, label %python
parts:
  %count = word %key[2]
  %items = getelementptr i8, ptr %key, i64 TUPLE_ITEMS
  br label %next
next:
  %k = phi i64 [0, %parts], [%k.next, %part.fine]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %part, label %view
part:
  %its = item %items[%k]
  %its.fine = call i1 @is.place(ptr %its)
  br i1 %its.fine, label %part.fine, label %python
part.fine:
  %k.next = add i64 %k, 1
  br label %next
view:
  %result = call ptr @PyObject_GetItem(ptr %array, ptr %key)
  %new = call ptr @array(ptr %result)
  %viewed = call ptr @wrapped(ptr %new)
  %declined = icmp eq ptr %viewed, DECLINED
  br i1 %declined, label %python, label %end
end:
  ret ptr %viewed
python:
  %found = call ptr @python(ptr @adjit_python_item, ptr %self, ptr %key, ptr null)
  ret ptr %found
}

; np.reshape by an int or a tuple of ints, while no tape is recording
define internal ptr @reshaped(ptr %x, ptr %shape) nounwind {
entry:
  %array = call ptr @viewed(ptr %x)
  %other = icmp eq ptr %array, null
  br i1 %other, label %declined, label %class
class:
  %kind = field %shape[8]
  %is.int = icmp eq ptr %kind, @adjit_int_type
  br i1 %is.int, label %view, label %several
several:
  %is.tuple = icmp eq ptr %kind, @adjit_tuple_type
  br i1 %is.tuple, label %sizes, label %declined
sizes:
  %count = word %shape[2]
  %items = getelementptr i8, ptr %shape, i64 TUPLE_ITEMS
  br label %next
next:
  %k = phi i64 [0, %sizes], [%k.next, %size.fine]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %size, label %view
size:
  %its = item %items[%k]
  %its.class = field %its[8]
  %fine = icmp eq ptr %its.class, @adjit_int_type
  br i1 %fine, label %size.fine, label %declined
size.fine:
  %k.next = add i64 %k, 1
  br label %next
view:
  %result = call ptr @python(ptr @adjit_array_reshape, ptr %array, ptr %shape, ptr null)
  %new = call ptr @array(ptr %result)
  %out = call ptr @wrapped(ptr %new)
  ret ptr %out
declined:
  ret ptr DECLINED
}

define ptr @adjit_transpose(ptr %self, ptr %closure) nounwind {
entry:
  %array = call ptr @viewed(ptr %self)
  %other = icmp eq ptr %array, null
  br i1 %other, label %python, label %view
view:
  %result = call ptr @adjit_turn(ptr %array, ptr null)
  %out = call ptr @wrapped(ptr %result)
  ret ptr %out
python:
  %found = call ptr @python(ptr @adjit_python_transpose, ptr %self, ptr null, ptr null)
  ret ptr %found
}
"""
