"""Files of one run, one for each rank, recognised by their names.

Measurements of several ranks write files such as ``report.0.sqlite`` or ``rank-3.trace.json``. Runs
at several scales write files such as ``app.p2.sqlite``, and repetitions ``app.r1.sqlite``. So names
are of ranks if they differ in one number only, and no letters before it name something else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

_NUMBER = re.compile(r"\d+")
_OF_RANKS = re.compile(r"(?:^|[^a-z])(?:mpi[-_.]?)?(?:rank|proc|process|procid|task|node)[-_.]?$")
_WORD = re.compile(r"[A-Za-z]$")
_LARGEST = 10_000_000


def ranks_of(files: Sequence[Path]) -> Mapping[int, Path]:
    """Return the file of each rank, or nothing if the files are not those of ranks.

    Parameters
    ----------
    files : files of one directory and one format

    Examples
    --------
    >>> sorted(ranks_of([Path("report.1.sqlite"), Path("report.0.sqlite")]))
    [0, 1]
    >>> ranks_of([Path("app.p1.sqlite"), Path("app.p2.sqlite")])
    {}
    """
    if len(files) < 2:
        return {}
    numbers = [_NUMBER.findall(path.name) for path in files]
    frames = {_NUMBER.sub("#", path.name) for path in files}
    if len(frames) > 1 or len({len(each) for each in numbers}) > 1:
        return {}
    columns = list(zip(*numbers, strict=True))
    varying = [k for k, column in enumerate(columns) if len(set(column)) > 1]
    if len(varying) != 1:
        return {}
    before = _text_before(files[0].name, varying[0])
    found = {int(text[:10]): path for text, path in zip(columns[varying[0]], files, strict=True)}
    if len(found) < len(files) or max(found) > _LARGEST:
        return {}
    if _OF_RANKS.search(before.lower()):
        return dict(sorted(found.items()))
    # A number without a name is a rank if the numbers are those of ranks.
    is_of_ranks = not _WORD.search(before) and sorted(found) == list(range(len(found)))
    return dict(sorted(found.items())) if is_of_ranks else {}


def _text_before(name: str, place: int) -> str:
    """Return the part of a name before one of its numbers."""
    return name[: list(_NUMBER.finditer(name))[place].start()]
