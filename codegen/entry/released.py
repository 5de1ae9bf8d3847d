"""The part of the native entry that runs native code without the GIL, as LLVM text (see `text.py`)."""

DECLARATIONS = """
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare i64 @PyThread_get_thread_ident()
"""

# Changes the reference count of each object; some are null.
EACH = """
define void @NAME(ptr %objects, i64 %count) nounwind {
entry:
  br label %next
next:
  %k = phi i64 [0, %entry], [%k.next, %done]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %look, label %over
look:
  %object = item %objects[%k]
  %some = icmp ne ptr %object, null
  br i1 %some, label %one, label %done
one:
  call void @CHANGE(ptr %object)
  br label %done
done:
  %k.next = add i64 %k, 1
  br label %next
over:
  ret void
}
"""
HOLD = EACH.replace("NAME", "adjit_hold_each").replace("CHANGE", "Py_IncRef")
DROP = EACH.replace("NAME", "adjit_drop_each").replace("CHANGE", "Py_DecRef")

RUN = """
; sets the holder of the locks of all variables that a call writes to: the thread, or zero
define internal void @set_holders(ptr %records, i64 %count, i64 %holder) nounwind {
entry:
  br label %next
next:
  %k = phi i64 [0, %entry], [%k.next, %done]
  %record = phi ptr [%records, %entry], [%record.next, %done]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %look, label %over
look:
  %updated = word %record[1]
  %writes = icmp ne i64 %updated, 0
  br i1 %writes, label %one, label %done
one:
  %lock = item %record[2]
  store i64 %holder, ptr %lock
  br label %done
done:
  %k.next = add i64 %k, 1
  %record.next = getelementptr i64, ptr %record, i64 RECORD
  br label %next
over:
  ret void
}

; runs the native code without the GIL, holding references to the arrays and the locks of the variables that it writes to
define i64 @adjit_run_released(ptr %route, ptr %buffers, ptr %objects, i64 %count, ptr %variables) nounwind {
entry:
  %main = item %route[MAIN]
  %arena = item %route[ARENA]
  %error = item %route[DETAILS]
  %variable.count = word %route[VARIABLES]
  %busy.at = getelementptr i64, ptr %route, i64 BUSY
  call void @adjit_hold_each(ptr %objects, i64 %count)
  %me = call i64 @PyThread_get_thread_ident()
  call void @set_holders(ptr %variables, i64 %variable.count, i64 %me)
  store i64 1, ptr %busy.at
  %quiet.at = getelementptr i64, ptr %error, i64 QUIET
  store i64 0, ptr %quiet.at
  %thread = call ptr @PyEval_SaveThread()
  %code = call i64 %main(ptr %buffers, ptr %arena, ptr %error)
  call void @PyEval_RestoreThread(ptr %thread)
  call void @set_holders(ptr %variables, i64 %variable.count, i64 0)
  call void @adjit_drop_each(ptr %objects, i64 %count)
  store i64 0, ptr %busy.at ; last, since the calls above may run Python code, and the error record is read after this
  ret i64 %code
}
"""

TEXT = DECLARATIONS + HOLD + DROP + RUN
