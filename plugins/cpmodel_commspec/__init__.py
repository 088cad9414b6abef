"""Communication specifications from OTF2 traces: the command `cpmodel trace`."""

from __future__ import annotations
