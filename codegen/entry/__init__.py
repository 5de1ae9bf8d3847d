"""The native entry: a CPython function that recognises its arguments and calls native code without Python in between.

In: tables that describe the specialisations of a function (routes). Out: a callable. `runtime` installs it.
"""
