"""The reader contract as tests, and writers of test files, for authors of reader plugins.

It needs pytest, which this package does not install. Nothing else here is imported with it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from callpath_modeler.testing.contract import ReaderContract

__all__ = ["ReaderContract"]

_CONTRACT = "callpath_modeler.testing.contract"
_CHECKS = "callpath_modeler.testing.checks"


def __getattr__(name: str) -> object:
    if name != "ReaderContract":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if not {_CHECKS, _CONTRACT} & set(sys.modules):
        import pytest

        # Assertions of these modules then show the compared values.
        pytest.register_assert_rewrite(_CHECKS, _CONTRACT)
    from callpath_modeler.testing.contract import ReaderContract

    return ReaderContract
