"""The option that checks an expectation file within another command."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.option_groups import was_asked
from callpath_modeler.cli.options import A_FILE

if TYPE_CHECKING:
    from callpath_modeler.analysis.expectations.check import Check
    from callpath_modeler.analysis.rank import Ranking

EXPECT = click.option(
    "--expect",
    type=A_FILE,
    metavar="FILE.toml",
    help="Add the verdicts of the expectations in this file, as `cpmodel check` gives them.",
)


def check_ranking(ranking: Ranking, path: Path | None) -> Check | None:
    """Return the results of expectations, at their own targets unless the user chose one.

    A target from a configuration file does not apply, as in `cpmodel check`. At infinity, only
    growth has a verdict, so the targets of the file apply there.
    """
    if path is None:
        return None
    from callpath_modeler.analysis.expectations.interpretation import read
    from callpath_modeler.expectation_check import check

    ctx = click.get_current_context()
    asked = any(was_asked(ctx, name) for name in ("target", "at"))
    named = read(path).parameter is None or (asked and math.isfinite(ranking.target))
    return check(ranking.fitted, path, target=ranking.fitted.at(ranking.target) if named else None)
