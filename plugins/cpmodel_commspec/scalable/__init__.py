"""Specifications for any number of processes, found from traces of several numbers.

1. Traces get common shapes and communicators (`tables.py`), and every trace a grid of ranks
   (`choice.py`).
2. Partners become functions of the place on the grid that are the same for all traces (`forms.py`).
3. The sequences of all ranks of all traces are folded and merged into one program (`merging.py`).
4. Conditions, rounds and numbers become formulas of p, x, y, z and the place (`conditions.py`,
   `specification.py`, `quantities.py`). The largest trace is kept back: a formula comes from the
   others, and is accepted if it is exact for the largest.
5. The program is expanded at the scale of every trace and compared with it (`extrapolation.py`).
6. The computation before each line becomes a performance model (`times.py`).
"""
