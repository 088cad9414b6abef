"""Options that are numbers take what people write, and nothing that only Python reads."""

from __future__ import annotations

import json

from cells import cells

NO_NUMBERS = ["1_000", "1" * 5000, "٣٢"]


@cells("option", ["--terms", "--top"])
@cells("text", NO_NUMBERS)
def test_an_option_with_such_a_number_is_refused(run, tmp_path, option, text):
    rows = [{"callpath": "main", "p": p, "time": 1.0 + p} for p in (2, 4, 8, 16, 32)]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(rows))
    run("rank", path, "--target", "64", option, text).fails(2, "not a number")
