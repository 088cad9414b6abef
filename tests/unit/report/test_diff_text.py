"""Text for a total whose interval excludes zero although no call path differs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from callpath_modeler.analysis.difference import difference
from callpath_modeler.report.diff_text import difference_text
from callpath_modeler.report.layout import DEFAULT_STYLE
from two_sides import LAWS, pair, runs


@pytest.fixture(scope="module")
def found():
    return difference(pair(runs(LAWS, 1), runs(LAWS, 2)), 512.0)


def shown(found, **of_the_total):
    """Return the text for given measured and predicted totals."""

    def told(changes):
        columns = {name: np.array(getattr(changes, name)) for name in of_the_total}
        for name, value in of_the_total.items():
            columns[name][-1] = value
        return replace(changes, **columns)

    changed = replace(found, measured=told(found.measured), predicted=told(found.predicted))
    lines = difference_text(changed, changed.order, DEFAULT_STYLE)
    return " ".join(line.plain for line in lines)


def test_an_interval_with_zero_in_it_needs_no_words(found):
    text = shown(found, low=-0.02, high=0.03, rate=0.7, mark=0)
    assert text.count("no difference is shown (-2.0 % … +3.0 %)") == 2
    assert "single comparison" not in text


def test_among_many_an_interval_without_zero_is_no_difference(found):
    text = shown(found, low=0.01, high=0.09, rate=0.2, mark=0)
    compared = int(np.isfinite(found.measured.p).sum())
    assert compared > 3
    said = f"no difference is shown among {compared} compared (+1.0 % … +9.0 %, single comparison)"
    assert text.count(said) == 2
    assert "should be due to chance; each band is for a single comparison" in text


def test_a_prediction_that_measurements_do_not_back_says_so(found):
    text = shown(found, low=0.01, high=0.09, rate=0.001, mark=0)
    assert "shown: the measurements do not confirm it (+1.0 % … +9.0 %, single comparison)" in text
    assert "shown: central values do not confirm it (+1.0 % … +9.0 %, single comparison)" in text
