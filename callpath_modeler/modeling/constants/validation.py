"""Constants of validation against expectations.

See docs/explanation/expectations.md.
"""

from __future__ import annotations

MATCH_CHUNK = 2048
"""Rows that are fitted together.

Unit: rows. Evidence: by convention.
"""

FURTHEST = 2.0**20
"""Largest scale at which a deciding run is searched, in units of the largest point.

Unit: ratio. Evidence: by convention.
"""

PER_DOUBLING = 4
"""Values of the parameter per doubling that are tried.

Unit: count. Evidence: by convention.
"""

VERDICT_CHUNK = 256
"""Rows whose bands are computed together.

Unit: rows. Evidence: by convention.
"""
