"""Exit statuses of `cpmodel` besides those of errors; importing them imports nothing else."""

from __future__ import annotations

EXIT_NO = 1
"""Status of a negative answer, for `click.Context.exit` after the output."""

EXIT_MEMORY = 8
"""Status of a command that needs more memory than there is."""

EXIT_BUG = 70
EXIT_INTERRUPT = 130
EXIT_CLOSED_PIPE = 141
