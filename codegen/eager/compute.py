"""The part of eager calls that reads operands and runs the loops of NumPy's ufuncs, as LLVM text (see `text.py`).

The offsets are those of CPython 3.11 to 3.14 and NumPy 2 on 64-bit platforms; `entry.available` and `functions.available` check them.
"""

TEXT = """
; a tensor with a new array as its value; null and DECLINED stay what they are
define internal ptr @wrapped(ptr %array) nounwind {
entry:
  %word = ptrtoint ptr %array to i64
  %is.array = icmp ugt i64 %word, 2
  br i1 %is.array, label %make, label %no
make:
  %out = call ptr @PyType_GenericAlloc(ptr @adjit_tensor_class, i64 0)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %drop, label %yes
drop:
  call void @Py_DecRef(ptr %array)
  ret ptr null
yes:
  %at = getelementptr i8, ptr %out, i64 BUFFER
  store ptr %array, ptr %at
  ret ptr %out
no:
  ret ptr %array
}

; what runtime/recording.py knows about this thread, or null
define internal ptr @here() nounwind {
entry:
  %state = call ptr @PyThreadState_GetDict()
  %none = icmp eq ptr %state, null
  br i1 %none, label %unknown, label %look
look:
  %here = call ptr @PyDict_GetItemWithError(ptr %state, ptr @adjit_here)
  ret ptr %here
unknown:
  ret ptr null
}

; the log of the only tape that is recording on this thread, null if there is no tape, and DECLINED if it is another recorder
define internal ptr @its.log() nounwind {
entry:
  %here = call ptr @here()
  %missing = icmp eq ptr %here, null
  br i1 %missing, label %unknown, label %found
found:
  %recorders = field %here[RECORDERS]
  %count = word %recorders[2]
  %silent = icmp eq i64 %count, 0
  br i1 %silent, label %nothing, label %taped
nothing:
  ret ptr null
taped:
  %log = field %here[LOG]
  %class = field %log[8]
  %eager = icmp eq ptr %class, @adjit_log_class
  br i1 %eager, label %yes, label %unknown
yes:
  ret ptr %log
unknown:
  ret ptr DECLINED
}

; the dtype of a tensor, if it is float32 or float64, otherwise null
define internal ptr @dtype(ptr %x) nounwind {
entry:
  %class = field %x[8]
  %is.tensor = icmp eq ptr %class, @adjit_tensor_class
  br i1 %is.tensor, label %tensor, label %no
tensor:
  %array = field %x[BUFFER]
  %empty = icmp eq ptr %array, null
  br i1 %empty, label %no, label %typed
typed:
  %descr = field %array[56]
  %double = icmp eq ptr %descr, @adjit_f64
  %single = icmp eq ptr %descr, @adjit_f32
  %float = or i1 %double, %single
  br i1 %float, label %yes, label %no
yes:
  ret ptr %descr
no:
  ret ptr null
}

; stores where the elements of an operand are, its rank, sizes, and number of elements; false if they are not floats of this dtype in a row
define internal i1 @operand(ptr %x, ptr %descr, ptr %place, ptr %scratch) nounwind {
entry:
  %overflow = alloca i32
  %rank.at = getelementptr i64, ptr %place, i64 1
  %dims.at = getelementptr i64, ptr %place, i64 2
  %count.at = getelementptr i64, ptr %place, i64 3
  %class = field %x[8]
  %is.tensor = icmp eq ptr %class, @adjit_tensor_class
  br i1 %is.tensor, label %tensor, label %other
tensor:
  %held = field %x[BUFFER]
  %empty = icmp eq ptr %held, null
  br i1 %empty, label %no, label %array
other:
  %is.array = icmp eq ptr %class, @adjit_array_type
  br i1 %is.array, label %array, label %number
array:
  %a = phi ptr [%held, %tensor], [%x, %other]
  %its.descr = field %a[56]
  %same.descr = icmp eq ptr %its.descr, %descr
  %flags.at = getelementptr i8, ptr %a, i64 64
  %flags = load i32, ptr %flags.at
  %laid = and i32 %flags, 257
  %in.a.row = icmp eq i32 %laid, 257
  %fine = and i1 %same.descr, %in.a.row
  br i1 %fine, label %sizes, label %no
sizes:
  %data = field %a[16]
  %narrow.at = getelementptr i8, ptr %a, i64 24
  %narrow = load i32, ptr %narrow.at
  %rank = zext i32 %narrow to i64
  %dims = field %a[32]
  store ptr %data, ptr %place
  store i64 %rank, ptr %rank.at
  store ptr %dims, ptr %dims.at
  br label %axis
axis:
  %k = phi i64 [0, %sizes], [%k.next, %axis.more]
  %count = phi i64 [1, %sizes], [%count.next, %axis.more]
  %more = icmp slt i64 %k, %rank
  br i1 %more, label %axis.more, label %counted
axis.more:
  %n = word %dims[%k]
  %count.next = mul i64 %count, %n
  %k.next = add i64 %k, 1
  br label %axis
counted:
  store i64 %count, ptr %count.at
  ret i1 true
number:
  %is.float = icmp eq ptr %class, @adjit_float_type
  br i1 %is.float, label %float, label %whole
float:
  %value.at = getelementptr i8, ptr %x, i64 16
  %value = load double, ptr %value.at
  br label %known
whole:
  %is.int = icmp eq ptr %class, @adjit_int_type
  br i1 %is.int, label %integer, label %no
integer:
  store i32 0, ptr %overflow
  %int = call i64 @PyLong_AsLongLongAndOverflow(ptr %x, ptr %overflow)
  %too.large = load i32, ptr %overflow
  %fits = icmp eq i32 %too.large, 0
  %low = icmp sge i64 %int, -EXACT
  %high = icmp sle i64 %int, EXACT
  %between = and i1 %low, %high
  %exact = and i1 %fits, %between
  br i1 %exact, label %converted, label %no
converted:
  %as.float = sitofp i64 %int to double
  br label %known
known:
  %v = phi double [%value, %float], [%as.float, %converted]
  %double = icmp eq ptr %descr, @adjit_f64
  br i1 %double, label %long, label %short
long:
  store double %v, ptr %scratch
  br label %stored
short:
  %rounded = fptrunc double %v to float
  store float %rounded, ptr %scratch
  br label %stored
stored:
  store ptr %scratch, ptr %place
  store i64 0, ptr %rank.at
  store ptr null, ptr %dims.at
  store i64 1, ptr %count.at
  ret i1 true
no:
  ret i1 false
}

; runs the loop of a ufunc for operands in place; a new array, or DECLINED. %y is null for a function of one operand.
define internal ptr @computed(ptr %table, ptr %descr, ptr %x, ptr %y) nounwind {
entry:
  %data = alloca [3 x ptr], align 16
  %steps = alloca [3 x i64], align 16
  %length = alloca i64
  %double = icmp eq ptr %descr, @adjit_f64
  %at = select i1 %double, i64 0, i64 4
  %row = getelementptr i64, ptr %table, i64 %at
  %item = select i1 %double, i64 8, i64 4
  %loop = item %row[0]
  %extra = item %row[1]
  %out.descr = item %row[2]
  %out.item = word %row[3]
  %x.data = load ptr, ptr %x
  %x.rank = word %x[1]
  %x.dims = item %x[2]
  %x.count = word %x[3]
  %data.1 = getelementptr ptr, ptr %data, i64 1
  %data.2 = getelementptr ptr, ptr %data, i64 2
  %steps.1 = getelementptr i64, ptr %steps, i64 1
  %steps.2 = getelementptr i64, ptr %steps, i64 2
  %alone = icmp eq ptr %y, null
  br i1 %alone, label %one, label %two
one:
  store i64 %item, ptr %steps
  store i64 %out.item, ptr %steps.1
  br label %shaped
two:
  %y.data = load ptr, ptr %y
  %y.rank = word %y[1]
  %y.dims = item %y[2]
  %y.count = word %y[3]
  %deep = icmp sge i64 %x.rank, %y.rank
  %deeper = select i1 %deep, i64 %x.rank, i64 %y.rank
  %least = select i1 %deep, i64 %y.rank, i64 %x.rank
  %pair.dims = select i1 %deep, ptr %x.dims, ptr %y.dims
  %pair.count = select i1 %deep, i64 %x.count, i64 %y.count
  %least.count = select i1 %deep, i64 %y.count, i64 %x.count
  br label %axis
axis: ; the last sizes of both are the same
  %k = phi i64 [1, %two], [%k.next, %axis.same]
  %more = icmp sle i64 %k, %least
  br i1 %more, label %axis.compare, label %fit
axis.compare:
  %x.axis = sub i64 %x.rank, %k
  %y.axis = sub i64 %y.rank, %k
  %x.n = word %x.dims[%x.axis]
  %y.n = word %y.dims[%y.axis]
  %same = icmp eq i64 %x.n, %y.n
  br i1 %same, label %axis.same, label %declined
axis.same:
  %k.next = add i64 %k, 1
  br label %axis
fit:
  %as.deep = icmp eq i64 %x.rank, %y.rank
  %scalar = icmp eq i64 %least, 0
  %simple = or i1 %as.deep, %scalar
  br i1 %simple, label %two.steps, label %rows
rows: ; NumPy may cut these otherwise, which only shows where results depend on the place of an element in a vector
  %flags = word %table[FLAGS]
  %exact = and i64 %flags, IS_EXACT
  %may.cut = icmp ne i64 %exact, 0
  %most = mul i64 %least.count, 64
  %long = icmp sge i64 %most, %pair.count
  %cut = and i1 %may.cut, %long
  br i1 %cut, label %two.steps, label %declined
two.steps:
  %x.lone = icmp eq i64 %x.rank, 0
  %y.lone = icmp eq i64 %y.rank, 0
  %x.spread = xor i1 %deep, true
  %x.fixed = and i1 %x.lone, %x.spread
  %x.no = xor i1 %as.deep, true
  %y.fixed = and i1 %y.lone, %x.no
  %x.step = select i1 %x.fixed, i64 0, i64 %item
  %y.step = select i1 %y.fixed, i64 0, i64 %item
  store i64 %x.step, ptr %steps
  store i64 %y.step, ptr %steps.1
  store i64 %out.item, ptr %steps.2
  %pair.n = select i1 %scalar, i64 %pair.count, i64 %least.count
  br label %shaped
shaped:
  %count = phi i64 [%x.count, %one], [%pair.count, %two.steps]
  %n = phi i64 [%x.count, %one], [%pair.n, %two.steps]
  %rank = phi i64 [%x.rank, %one], [%deeper, %two.steps]
  %dims = phi ptr [%x.dims, %one], [%pair.dims, %two.steps]
  %y.first = phi ptr [null, %one], [%y.data, %two.steps]
  %x.goes = phi i1 [true, %one], [%deep, %two.steps]
  %few = icmp ule i64 %count, MOST
  %there = icmp ne ptr %loop, null
  %usable = and i1 %few, %there
  br i1 %usable, label %make, label %declined
make:
  own %out.descr
  %rank.narrow = trunc i64 %rank to i32
  %out = call ptr @adjit_new_array(ptr @adjit_array_type, ptr %out.descr, i32 %rank.narrow, ptr %dims, ptr null, ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %out, null
  br i1 %failed, label %end, label %run
run:
  %out.data = field %out[16]
  %row.bytes = mul i64 %n, %item
  %out.bytes = mul i64 %n, %out.item
  %x.more = select i1 %x.goes, i64 %row.bytes, i64 0
  %y.more = select i1 %x.goes, i64 0, i64 %row.bytes
  br label %next
next:
  %done = phi i64 [0, %run], [%done.next, %call]
  %x.now = phi ptr [%x.data, %run], [%x.next, %call]
  %y.now = phi ptr [%y.first, %run], [%y.next, %call]
  %out.now = phi ptr [%out.data, %run], [%out.next, %call]
  %left = icmp slt i64 %done, %count
  br i1 %left, label %call, label %end
call:
  %second = select i1 %alone, ptr %out.now, ptr %y.now
  store ptr %x.now, ptr %data
  store ptr %second, ptr %data.1
  store ptr %out.now, ptr %data.2
  store i64 %n, ptr %length
  call void %loop(ptr %data, ptr %length, ptr %steps, ptr %extra)
  %done.next = add i64 %done, %n
  %x.next = getelementptr i8, ptr %x.now, i64 %x.more
  %y.next = getelementptr i8, ptr %y.now, i64 %y.more
  %out.next = getelementptr i8, ptr %out.now, i64 %out.bytes
  br label %next
end:
  ret ptr %out
declined:
  ret ptr DECLINED
}
"""
