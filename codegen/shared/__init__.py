"""Exchanges between the ranks of one machine through memory that they share, in place of MPI's.

In: the name of a collective, a dtype and the ranks. Out: LLVM text of a routine. `windows` maps the memory and measures from which size on
it is faster than MPI; `routines` are what all exchanges begin with; `sums`, `parts` and `blocks` are the exchanges.
"""
