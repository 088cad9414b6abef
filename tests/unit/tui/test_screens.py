"""Screens of the browser, stored in `screens/`; CPMODEL_NEW_SCREENS=1 updates them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from driver import GIVEN, drive

from synthetic import POINTS, fitted

SCREENS = Path(__file__).parent / "screens"
KEYS = {
    "start": "",
    "bottom-up": "2",
    "flat by growth": ["3", "s", "s", "s", "s"],
    "zoomed": ["j", "z", "E"],
    "infinity": ["t", *"inf", "enter"],
    "help": "?",
}


P = np.array(POINTS)
LAWS = {
    "main": 2 + 0 * P,
    "main/initialise": 0.7 + 0 * P,
    "main/initialise/MPI_Init": 0.2 * P,
    "main/solve": 1 + 0 * P,
    "main/solve/compute_forces_of_all_elements": 40 + 0 * P,
    "main/solve/exchange": 0.1 + 0 * P,
    "main/solve/exchange/MPI_Waitall": 0.05 * P * np.log2(P),
    "main/solve/exchange/MPI_Isend": 0.3 + 0 * P,
    "main/solve/norm": 0.1 + 0 * P,
    "main/solve/norm/MPI_Allreduce": 0.9 * np.sqrt(P),
    "main/output": 0.02 + 0 * P,
    "main/output/MPI_Barrier": 0.01 + 0 * P,
}


@pytest.fixture(scope="module")
def application():
    return fitted({path: law.tolist() for path, law in LAWS.items()})


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
@pytest.mark.parametrize("name", KEYS)
def test_the_screen_is_as_it_was(application, name, size):
    async def steps(screen):
        await screen.press(*KEYS[name])
        shown = "\n".join(screen.lines) + "\n"
        assert max(map(len, shown.splitlines())) <= size[0]
        path = SCREENS / f"{name} {size[0]}x{size[1]}.txt"
        if os.environ.get("CPMODEL_NEW_SCREENS"):
            path.write_text(shown, encoding="utf-8")
            pytest.skip("written anew, so there is nothing to compare with")
        assert shown == path.read_text(encoding="utf-8")

    drive(steps, application, size=size, target=1000.0, given=GIVEN)
