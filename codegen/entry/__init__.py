"""The native entry: a CPython function that checks its arguments and calls native code without running Python code.

In: tables that describe the specialisations of a function (routes). Out: a callable, which `runtime` installs.
"""
