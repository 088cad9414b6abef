"""Exit statuses of `cpmodel` besides those of errors; importing them imports nothing else."""

from __future__ import annotations

EXIT_NO = 1
"""The answer is no: said by `click.Context.exit` once the answer is out."""

EXIT_BUG = 70
EXIT_INTERRUPT = 130
EXIT_CLOSED_PIPE = 141
