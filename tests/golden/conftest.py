from __future__ import annotations

from command_line import clean, run  # noqa: F401
