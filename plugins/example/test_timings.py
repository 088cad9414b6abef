from __future__ import annotations

import pytest
from cpmodel_timings import TimingsReader

from callpath_modeler.testing import ReaderContract

SMALL = """\
timings of myapp
main = 0.5 0.6
  solve = 2.5 2.3
    exchange = 0.1 0.2
  write = 0 4
"""


class TestTimings(ReaderContract):
    reader_class = TimingsReader

    @pytest.fixture
    def profile(self, tmp_path):
        path = tmp_path / "small.timings"
        path.write_text(SMALL)
        return path

    @pytest.fixture
    def known(self):
        return {("time", "main/solve"): 2.4, ("time", "main/write"): 2.0}
