from __future__ import annotations

import pytest

from callpath_modeler import errors
from cells import cells


@cells(
    ("kind", "status"),
    [
        (errors.UsageError, 2),
        (errors.InputError, 3),
        (errors.DataError, 4),
        (errors.PluginError, 5),
        (errors.OutputError, 6),
        (errors.WorkerDiedError, 7),
        (errors.CallpathModelerError, 70),
    ],
)
def test_every_error_has_its_exit_status(kind, status):
    error = kind("what", hint="do")
    assert error.exit_code == status
    assert (error.message, error.hint, str(error)) == ("what", "do", "what")
    assert isinstance(error, errors.CallpathModelerError)


@pytest.mark.parametrize(("name", "meant"), [("tmie", "time"), ("TIME", "time"), ("bytes", "")])
def test_a_name_is_known_by_its_letters_whatever_their_case(name, meant):
    assert errors.closest(name, ["visits", "time"]) == meant
