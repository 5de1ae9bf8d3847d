"""The thread pool, and the native routines shared by all compiled functions.

In: the names of routines that a program imports. Out: their addresses, compiled once per process.
"""
