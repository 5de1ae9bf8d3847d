"""The part of eager calls that Python and NumPy call, as LLVM text (see `text.py`).

What does not take the quick way, an error for instance, is left to the Python function that each of these replaces.
"""

TEXT = """
; a call of Python with up to three arguments
define internal ptr @python(ptr %function, ptr %a, ptr %b, ptr %c) nounwind {
entry:
  %args = alloca [3 x ptr], align 16
  %args.1 = getelementptr ptr, ptr %args, i64 1
  %args.2 = getelementptr ptr, ptr %args, i64 2
  store ptr %a, ptr %args
  store ptr %b, ptr %args.1
  store ptr %c, ptr %args.2
  %no.b = icmp eq ptr %b, null
  %no.c = icmp eq ptr %c, null
  %two = select i1 %no.c, i64 2, i64 3
  %n = select i1 %no.b, i64 1, i64 %two
  %out = call ptr @PyObject_Vectorcall(ptr %function, ptr %args, i64 %n, ptr null)
  ret ptr %out
}

define internal i1 @is.tensor(ptr %x) nounwind {
entry:
  %class = field %x[8]
  %found = call i32 @PyType_IsSubtype(ptr %class, ptr @adjit_tensor_class)
  %yes = icmp ne i32 %found, 0
  ret i1 %yes
}

; a method, and if that does not know the other operand, the reflected one of the other
define internal ptr @methods(ptr %table, ptr %x, ptr %y, ptr %z) nounwind {
entry:
  %method = item %table[METHOD]
  %reflected = item %table[REFLECTED]
  %x.tensor = call i1 @is.tensor(ptr %x)
  br i1 %x.tensor, label %first, label %second
first:
  %out = call ptr @python(ptr %method, ptr %x, ptr %y, ptr %z)
  %unknown = icmp eq ptr %out, @adjit_not_implemented
  %x.class = field %x[8]
  %y.class = field %y[8]
  %other = icmp ne ptr %x.class, %y.class
  %again = and i1 %unknown, %other
  br i1 %again, label %maybe, label %end
maybe:
  %y.tensor = call i1 @is.tensor(ptr %y)
  br i1 %y.tensor, label %swap, label %end
swap:
  call void @Py_DecRef(ptr %out)
  br label %second
second:
  %swapped = call ptr @python(ptr %reflected, ptr %y, ptr %x, ptr %z)
  ret ptr %swapped
end:
  ret ptr %out
}

define internal ptr @prefix(ptr %table, ptr %x) nounwind {
entry:
  %out = call ptr @single(ptr %table, ptr %x)
  %declined = icmp eq ptr %out, DECLINED
  br i1 %declined, label %python, label %end
python:
  %method = item %table[METHOD]
  %found = call ptr @python(ptr %method, ptr %x, ptr null, ptr null)
  ret ptr %found
end:
  ret ptr %out
}

define internal ptr @infix(ptr %table, ptr %x, ptr %y) nounwind {
entry:
  %out = call ptr @double(ptr %table, ptr %x, ptr %y)
  %declined = icmp eq ptr %out, DECLINED
  br i1 %declined, label %python, label %end
python:
  %found = call ptr @methods(ptr %table, ptr %x, ptr %y, ptr null)
  ret ptr %found
end:
  ret ptr %out
}

define ptr @adjit_compare(ptr %x, ptr %y, i32 %which) nounwind {
entry:
  %at = zext i32 %which to i64
  %table = item @adjit_comparisons[%at]
  %out = call ptr @double(ptr %table, ptr %x, ptr %y)
  %declined = icmp eq ptr %out, DECLINED
  br i1 %declined, label %python, label %end
python:
  %method = item %table[METHOD]
  %found = call ptr @python(ptr %method, ptr %x, ptr %y, ptr null)
  ret ptr %found
end:
  ret ptr %out
}

define ptr @adjit_power(ptr %x, ptr %y, ptr %z) nounwind {
entry:
  %squared = icmp eq ptr %y, @adjit_two
  %no.modulus = icmp eq ptr %z, @adjit_none
  %usual = and i1 %squared, %no.modulus
  br i1 %usual, label %square, label %python
square:
  %out = call ptr @single(ptr @adjit_table_square, ptr %x)
  %declined = icmp eq ptr %out, DECLINED
  br i1 %declined, label %python, label %end
python:
  %found = call ptr @methods(ptr @adjit_table_square, ptr %x, ptr %y, ptr %z)
  ret ptr %found
end:
  ret ptr %out
}

; a function of NumPy without warnings, as in ir/silence.py: a new array, or DECLINED after an error, which is raised elsewhere
define internal ptr @silently(ptr %function, ptr %a, ptr %b) nounwind {
entry:
  %here = call ptr @here()
  %run = field %here[RUN]
  %result = call ptr @python(ptr %run, ptr %function, ptr %a, ptr %b)
  %out = call ptr @array(ptr %result)
  ret ptr %out
}

; a result of NumPy, which may be a scalar, as an array
define internal ptr @array(ptr %result) nounwind {
entry:
  %failed = icmp eq ptr %result, null
  br i1 %failed, label %clear, label %made
clear:
  call void @PyErr_Clear()
  ret ptr DECLINED
made:
  %class = field %result[8]
  %is.array = icmp eq ptr %class, @adjit_array_type
  br i1 %is.array, label %end, label %scalar
scalar:
  %converted = call ptr @adjit_from_scalar(ptr %result, ptr null)
  call void @Py_DecRef(ptr %result)
  %unknown = icmp eq ptr %converted, null
  br i1 %unknown, label %clear, label %converted.end
converted.end:
  ret ptr %converted
end:
  ret ptr %result
}

; a product of matrices and vectors, of which the first is a tensor; the table has NumPy's function
define internal ptr @product(ptr %table, ptr %x, ptr %y) nounwind {
entry:
  %descr = call ptr @dtype(ptr %x)
  %unknown = icmp eq ptr %descr, null
  br i1 %unknown, label %declined, label %second
second:
  %a = field %x[BUFFER]
  %class = field %y[8]
  %is.array = icmp eq ptr %class, @adjit_array_type
  br i1 %is.array, label %typed, label %maybe
maybe:
  %y.descr = call ptr @dtype(ptr %y)
  %other = icmp eq ptr %y.descr, null
  br i1 %other, label %declined, label %tensor
tensor:
  %held = field %y[BUFFER]
  br label %typed
typed:
  %b = phi ptr [%y, %second], [%held, %tensor]
  %b.descr = field %b[56]
  %same = icmp eq ptr %b.descr, %descr
  br i1 %same, label %ranks, label %declined
ranks:
  %a.at = getelementptr i8, ptr %a, i64 24
  %b.at = getelementptr i8, ptr %b, i64 24
  %a.rank = load i32, ptr %a.at
  %b.rank = load i32, ptr %b.at
  %a.less = sub i32 %a.rank, 1
  %b.less = sub i32 %b.rank, 1
  %a.fits = icmp ult i32 %a.less, 2
  %b.fits = icmp ult i32 %b.less, 2
  %fit = and i1 %a.fits, %b.fits
  br i1 %fit, label %mode, label %declined
mode:
  %function = item %table[FUNCTION]
  %log = call ptr @its.log()
  %log.word = ptrtoint ptr %log to i64
  switch i64 %log.word, label %taped [i64 0, label %plain
                                      i64 1, label %declined]
taped:
  %noted = call ptr @under.tape(ptr %log, ptr %table, ptr %descr, ptr %x, ptr %y, ptr null, ptr null)
  %unwatched = icmp eq ptr %noted, NOTHING
  br i1 %unwatched, label %plain, label %end
end:
  ret ptr %noted
plain:
  %new = call ptr @silently(ptr %function, ptr %a, ptr %b)
  %out = call ptr @wrapped(ptr %new)
  ret ptr %out
declined:
  ret ptr DECLINED
}

define ptr @adjit_matmul(ptr %x, ptr %y) nounwind {
entry:
  %out = call ptr @product(ptr @adjit_table_matmul, ptr %x, ptr %y)
  %declined = icmp eq ptr %out, DECLINED
  br i1 %declined, label %python, label %end
python:
  %found = call ptr @methods(ptr @adjit_table_matmul, ptr %x, ptr %y, ptr null)
  ret ptr %found
end:
  ret ptr %out
}

; whether the user, rather than a library or adjit, is known to have called NumPy: `numpy_fallback.called_by_user`
define internal i1 @by.user() nounwind {
entry:
  %loaded = word @adjit_modules[2]
  %without = load i64, ptr @adjit_without
  %none = icmp eq i64 %loaded, %without
  br i1 %none, label %yes, label %look
look:
  %globals = call ptr @PyEval_GetGlobals()
  %no.frame = icmp eq ptr %globals, null
  br i1 %no.frame, label %no, label %name
name:
  %module = call ptr @PyDict_GetItem(ptr %globals, ptr @adjit_name)
  %unnamed = icmp eq ptr %module, null
  br i1 %unnamed, label %no, label %string
string:
  %class = field %module[8]
  %is.string = icmp eq ptr %class, @adjit_str_type
  br i1 %is.string, label %kind, label %no
kind:
  %found = call ptr @PyDict_GetItem(ptr @adjit_kinds, ptr %module)
  %users = icmp eq ptr %found, @adjit_user
  ret i1 %users
yes:
  ret i1 true
no:
  ret i1 false
}

; __array_ufunc__(self, ufunc, method, *inputs, **kwargs)
define ptr @adjit_ufunc(ptr %self, ptr %args, i64 %nargs, ptr %keywords) nounwind {
entry:
  %plain = icmp eq ptr %keywords, null
  %three = icmp eq i64 %nargs, 3
  %four = icmp eq i64 %nargs, 4
  %number = or i1 %three, %four
  %usual = and i1 %plain, %number
  br i1 %usual, label %method, label %python
method:
  %how = item %args[1]
  %how.class = field %how[8]
  %is.string = icmp eq ptr %how.class, @adjit_str_type
  br i1 %is.string, label %string, label %python
string:
  %difference = call i32 @PyUnicode_Compare(ptr %how, ptr @adjit_call)
  %called = icmp eq i32 %difference, 0
  br i1 %called, label %caller, label %python
caller:
  %by.user = call i1 @by.user()
  br i1 %by.user, label %search, label %python
search:
  %ufunc = load ptr, ptr %args
  %x = item %args[2]
  br label %next
next:
  %at = phi i64 [0, %search], [%at.next, %other]
  %row = getelementptr [2 x ptr], ptr @adjit_ufuncs, i64 %at
  %its = load ptr, ptr %row
  %found = icmp eq ptr %its, %ufunc
  br i1 %found, label %compute, label %other
other:
  %at.next = add i64 %at, 1
  %end = icmp eq ptr %its, null
  br i1 %end, label %python, label %next
compute:
  %table = item %row[1]
  %flags = word %table[FLAGS]
  %binary = and i64 %flags, IS_BINARY
  %has.two = icmp ne i64 %binary, 0
  br i1 %has.two, label %two, label %one
one:
  br i1 %three, label %unary, label %python
unary:
  %out.one = call ptr @single(ptr %table, ptr %x)
  br label %computed
two:
  br i1 %four, label %pair, label %python
pair:
  %y = item %args[3]
  %out.two = call ptr @double(ptr %table, ptr %x, ptr %y)
  br label %computed
computed:
  %out = phi ptr [%out.one, %unary], [%out.two, %pair]
  %declined = icmp eq ptr %out, DECLINED
  br i1 %declined, label %python, label %done
done:
  ret ptr %out
python:
  %result = call ptr @again(ptr @adjit_python_ufunc, ptr %self, ptr %args, i64 %nargs, ptr %keywords)
  ret ptr %result
}

; the same call of a Python function
define internal ptr @again(ptr %function, ptr %self, ptr %args, i64 %nargs, ptr %keywords) nounwind {
entry:
  %none = icmp eq ptr %keywords, null
  br i1 %none, label %sized, label %named
named:
  %names = word %keywords[2]
  br label %sized
sized:
  %more = phi i64 [0, %entry], [%names, %named]
  %given = add i64 %nargs, %more
  %all = add i64 %given, 1
  %copy = alloca ptr, i64 %all, align 16
  store ptr %self, ptr %copy
  br label %next
next:
  %k = phi i64 [0, %sized], [%k.next, %one]
  %left = icmp slt i64 %k, %given
  br i1 %left, label %one, label %call
one:
  %x = item %args[%k]
  %k.next = add i64 %k, 1
  %to = getelementptr ptr, ptr %copy, i64 %k.next
  store ptr %x, ptr %to
  br label %next
call:
  %count = add i64 %nargs, 1
  %out = call ptr @PyObject_Vectorcall(ptr %function, ptr %copy, i64 %count, ptr %keywords)
  ret ptr %out
}
"""
