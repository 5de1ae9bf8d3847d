"""The thread pool, and the native routines that all compiled functions share.

In: the names of routines that a program imports. Out: their addresses, compiled once per process.
"""
