"""Communication specifications from OTF2 traces: the command `cpmodel trace`.

`recording` reads a trace, and `compression` turns the operations of all ranks into a
`Specification`. `simulation` runs it, `generators` write it in a language, `replay` gives it clocks
on a network, and `scalable` finds formulas for any number of processes. The modules beside these
folders hold the common types.
"""

from __future__ import annotations
