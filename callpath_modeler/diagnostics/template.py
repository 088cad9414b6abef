"""The text of one kind of finding."""

from __future__ import annotations

from msgspec import Struct


class FindingKind(Struct, frozen=True, kw_only=True):
    """One numbered kind of finding, with the parts of its message.

    Attributes
    ----------
    what : what happened, as a clause without a full stop
    why : why it matters to the result, in sentences
    remedy : what the user can do about it, in sentences
    example : subject and message of such a finding
    """

    what: str
    why: str
    remedy: str
    example: str
