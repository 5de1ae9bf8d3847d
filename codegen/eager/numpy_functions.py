"""The part of eager calls for functions of NumPy that are no ufuncs, as LLVM text (see `text.py`)."""

TEXT = """
; __array_function__(self, function, types, args, kwargs)
define ptr @adjit_function(ptr %self, ptr %args, i64 %nargs, ptr %keywords) nounwind {
entry:
  %plain = icmp eq ptr %keywords, null
  %four = icmp eq i64 %nargs, 4
  %usual = and i1 %plain, %four
  br i1 %usual, label %function, label %python
function:
  %which = load ptr, ptr %args
  %given = item %args[2]
  %named = item %args[3]
  %given.class = field %given[8]
  %named.class = field %named[8]
  %is.tuple = icmp eq ptr %given.class, @adjit_tuple_type
  %is.dict = icmp eq ptr %named.class, @adjit_dict_type
  %as.numpy = and i1 %is.tuple, %is.dict
  br i1 %as.numpy, label %counts, label %python
counts:
  %count = word %given[2]
  %names = word %named[2]
  %unnamed = icmp eq i64 %names, 0
  %items = getelementptr i8, ptr %given, i64 TUPLE_ITEMS
  %is.dot = icmp eq ptr %which, @adjit_dot
  br i1 %is.dot, label %dot, label %not.dot
dot:
  %pair = icmp eq i64 %count, 2
  %dot.usual = and i1 %pair, %unnamed
  br i1 %dot.usual, label %dot.user, label %python
dot.user:
  %dot.by.user = call i1 @by.user()
  br i1 %dot.by.user, label %dot.compute, label %python
dot.compute:
  %x = load ptr, ptr %items
  %y = item %items[1]
  %dot.out = call ptr @product(ptr @adjit_table_dot, ptr %x, ptr %y)
  br label %computed
not.dot:
  %is.where = icmp eq ptr %which, @adjit_where
  br i1 %is.where, label %where, label %not.where
where:
  %three = icmp eq i64 %count, 3
  %where.usual = and i1 %three, %unnamed
  br i1 %where.usual, label %where.user, label %python
where.user:
  %where.by.user = call i1 @by.user()
  br i1 %where.by.user, label %where.compute, label %python
where.compute:
  %where.out = call ptr @selected(ptr %items)
  br label %computed
not.where:
  %is.sum = icmp eq ptr %which, @adjit_sum
  br i1 %is.sum, label %sum, label %not.sum
sum:
  %alone = icmp eq i64 %count, 1
  %sum.usual = and i1 %alone, %unnamed
  br i1 %sum.usual, label %sum.user, label %python
sum.user:
  %sum.by.user = call i1 @by.user()
  br i1 %sum.by.user, label %sum.compute, label %python
sum.compute:
  %terms = load ptr, ptr %items
  %sum.out = call ptr @summed(ptr %terms)
  br label %computed
not.sum:
  %is.reshape = icmp eq ptr %which, @adjit_reshape
  br i1 %is.reshape, label %reshape, label %not.reshape
reshape:
  %with.shape = icmp eq i64 %count, 2
  %reshape.usual = and i1 %with.shape, %unnamed
  br i1 %reshape.usual, label %reshape.user, label %python
reshape.user:
  %reshape.by.user = call i1 @by.user()
  br i1 %reshape.by.user, label %reshape.compute, label %python
reshape.compute:
  %reshaped = load ptr, ptr %items
  %shape = item %items[1]
  %reshape.out = call ptr @reshaped(ptr %reshaped, ptr %shape)
  br label %computed
not.reshape:
  %is.joined = icmp eq ptr %which, @adjit_concatenate
  br i1 %is.joined, label %join, label %python
join:
  %lists = icmp eq i64 %count, 1
  br i1 %lists, label %join.axis, label %python
join.axis:
  br i1 %unnamed, label %join.user, label %join.named
join.named:
  %single = icmp eq i64 %names, 1
  %axis.given = call ptr @PyDict_GetItem(ptr %named, ptr @adjit_axis)
  %has.axis = icmp ne ptr %axis.given, null
  %axis.only = and i1 %single, %has.axis
  br i1 %axis.only, label %join.class, label %python
join.class:
  %axis.class = field %axis.given[8]
  %axis.int = icmp eq ptr %axis.class, @adjit_int_type
  br i1 %axis.int, label %join.value, label %python
join.value:
  %overflow = alloca i32
  store i32 0, ptr %overflow
  %axis.value = call i64 @PyLong_AsLongLongAndOverflow(ptr %axis.given, ptr %overflow)
  %axis.low = icmp sge i64 %axis.value, -64
  %axis.high = icmp sle i64 %axis.value, 63
  %axis.fits = and i1 %axis.low, %axis.high
  br i1 %axis.fits, label %join.user, label %python
join.user:
  %axis = phi i64 [0, %join.axis], [%axis.value, %join.value]
  %join.by.user = call i1 @by.user()
  br i1 %join.by.user, label %join.compute, label %python
join.compute:
  %xs = load ptr, ptr %items
  %join.out = call ptr @joined(ptr %xs, i64 %axis)
  br label %computed
computed:
  %out = phi ptr [%dot.out, %dot.compute], [%where.out, %where.compute], [%join.out, %join.compute],
               [%sum.out, %sum.compute], [%reshape.out, %reshape.compute]
  %declined = icmp eq ptr %out, DECLINED
  br i1 %declined, label %python, label %done
done:
  ret ptr %out
python:
  %result = call ptr @again(ptr @adjit_python_function, ptr %self, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %result
}

; the sum of all elements, as an op for each rank
define internal ptr @summed(ptr %x) nounwind {
entry:
  %descr = call ptr @dtype(ptr %x)
  %unknown = icmp eq ptr %descr, null
  br i1 %unknown, label %declined, label %ranked
ranked:
  %array = field %x[BUFFER]
  %rank.at = getelementptr i8, ptr %array, i64 24
  %rank = load i32, ptr %rank.at
  %known = icmp ult i32 %rank, RANKS
  br i1 %known, label %sum, label %declined
sum:
  %at = zext i32 %rank to i64
  %table = item @adjit_sums[%at]
  %out = call ptr @single(ptr %table, ptr %x)
  ret ptr %out
declined:
  ret ptr DECLINED
}

; np.where of a condition and two tensors of one float dtype, while no tape is recording
define internal ptr @selected(ptr %items) nounwind {
entry:
  %condition = load ptr, ptr %items
  %x = item %items[1]
  %y = item %items[2]
  %x.descr = call ptr @dtype(ptr %x)
  %y.descr = call ptr @dtype(ptr %y)
  %same = icmp eq ptr %x.descr, %y.descr
  %known = icmp ne ptr %x.descr, null
  %typed = and i1 %same, %known
  br i1 %typed, label %mode, label %declined
mode:
  %log = call ptr @its.log()
  %free = icmp eq ptr %log, null
  br i1 %free, label %first, label %declined
first:
  %class = field %condition[8]
  %is.tensor = icmp eq ptr %class, @adjit_tensor_class
  br i1 %is.tensor, label %tensor, label %declined
tensor:
  %c = field %condition[BUFFER]
  %empty = icmp eq ptr %c, null
  br i1 %empty, label %declined, label %truth
truth:
  %descr = field %c[56]
  %is.bool = icmp eq ptr %descr, @adjit_bool
  br i1 %is.bool, label %select, label %declined
select:
  %a = field %x[BUFFER]
  %b = field %y[BUFFER]
  %result = call ptr @adjit_select(ptr %c, ptr %a, ptr %b)
  %array = call ptr @array(ptr %result)
  %out = call ptr @wrapped(ptr %array)
  ret ptr %out
declined:
  ret ptr DECLINED
}

; np.concatenate of tensors of one float dtype, while no tape is recording
define internal ptr @joined(ptr %xs, i64 %axis) nounwind {
entry:
  %log = call ptr @its.log()
  %free = icmp eq ptr %log, null
  br i1 %free, label %class, label %declined
class:
  %kind = field %xs[8]
  %is.list = icmp eq ptr %kind, @adjit_list_type
  br i1 %is.list, label %list, label %maybe
maybe:
  %is.tuple = icmp eq ptr %kind, @adjit_tuple_type
  br i1 %is.tuple, label %tuple, label %declined
list:
  %in.list = field %xs[24]
  br label %sized
tuple:
  %in.tuple = getelementptr i8, ptr %xs, i64 TUPLE_ITEMS
  br label %sized
sized:
  %given = phi ptr [%in.list, %list], [%in.tuple, %tuple]
  %count = word %xs[2]
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %typed, label %declined
typed:
  %x.0 = load ptr, ptr %given
  %descr = call ptr @dtype(ptr %x.0)
  %unknown = icmp eq ptr %descr, null
  br i1 %unknown, label %declined, label %look
look:
  %l = phi i64 [0, %typed], [%l.next, %looked]
  %unseen = icmp slt i64 %l, %count
  br i1 %unseen, label %looking, label %gather
looking:
  %its = item %given[%l]
  %its.descr = call ptr @dtype(ptr %its)
  %same = icmp eq ptr %its.descr, %descr
  br i1 %same, label %looked, label %declined
looked:
  %l.next = add i64 %l, 1
  br label %look
gather: ; a tuple of these arrays: the list may change while memory is allocated, so each tensor is looked at once more
  %arrays = call ptr @PyTuple_New(i64 %count)
  %failed = icmp eq ptr %arrays, null
  br i1 %failed, label %error, label %unchanged
unchanged:
  %now = word %xs[2]
  %as.long = icmp eq i64 %now, %count
  br i1 %as.long, label %items, label %drop
items:
  %item.0 = getelementptr i8, ptr %arrays, i64 TUPLE_ITEMS
  br i1 %is.list, label %items.list, label %next
items.list:
  %in.list.now = field %xs[24]
  br label %next
next:
  %from = phi ptr [%given, %items], [%in.list.now, %items.list], [%from, %filled]
  %k = phi i64 [0, %items], [0, %items.list], [%k.next, %filled]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %fill, label %join
fill:
  %x = item %from[%k]
  %x.descr = call ptr @dtype(ptr %x)
  %still = icmp eq ptr %x.descr, %descr
  br i1 %still, label %filled, label %drop
filled:
  %array = field %x[BUFFER]
  own %array
  %to = getelementptr ptr, ptr %item.0, i64 %k
  store ptr %array, ptr %to
  %k.next = add i64 %k, 1
  br label %next
join:
  %axis.narrow = trunc i64 %axis to i32
  %result = call ptr @adjit_join(ptr %arrays, i32 %axis.narrow)
  call void @Py_DecRef(ptr %arrays)
  %whole = call ptr @array(ptr %result)
  %out = call ptr @wrapped(ptr %whole)
  ret ptr %out
drop:
  call void @Py_DecRef(ptr %arrays)
  br label %declined
error:
  ret ptr null
declined:
  ret ptr DECLINED
}
"""
