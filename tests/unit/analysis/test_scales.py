from __future__ import annotations

import numpy as np

from callpath_modeler.analysis.scales import scale_to_run
from callpath_modeler.units import setting_text
from cells import cells

POWERS, CUBES = (4.0, 8.0, 16.0, 32.0), (8.0, 27.0, 64.0, 125.0)


@cells(
    ("points", "least", "text"),
    [
        (POWERS, 32 * 2**16.5, "p = 3000000"),
        (POWERS, 32 * 2**1.25, "p = 77"),
        (POWERS, 4096.0, "p = 4096"),
        ((24.0, 48.0, 96.0), 96 * 2**0.75, "p = 170"),
        ((9.0, 16.0, 25.0), 25 * 2**0.5, "p = 36"),
        (CUBES, 125 * 2**14.5, "p = 2924207"),
        ((0.5, 0.75, 1.5), 1.5 * 2**0.25, "p = 1.8"),
    ],
)
def test_a_scale_to_run_is_one_that_people_would_type(points, least, text):
    found = scale_to_run(np.array(points), least)
    assert setting_text({"p": found}) == text
    assert least <= found < 1.5 * least
