"""The page and the notebook on use from Python, executed from the top of a checkout."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import numpy as np
import pytest

from callpath_modeler import FitOptions, LoadOptions, ReadOptions, Scaling, fit, load, rank
from callpath_modeler.errors import UsageError
from cells import cells
from synthetic import experiment, fitted

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "use-from-python.md").read_text(encoding="utf-8")
NOTEBOOK = ROOT / "docs" / "tutorial" / "notebook.ipynb"
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
LAWS = {"main": [1.0, 1.1, 1.2, 1.3, 1.4]}


def test_the_page_runs_from_top_to_bottom(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    names = {}
    for block in BLOCKS:
        exec(compile(block, "use-from-python.md", "exec"), names)  # noqa: S102
    printed = capsys.readouterr().out
    assert len(BLOCKS) == 10
    assert r"\mathit{time}(p) = " in printed
    assert "<Experiment lulesh2.0: 73 call paths, 5 points of p, time>" in printed
    assert printed.rstrip().endswith("O(p^(1/2))")


def test_the_notebook_runs_from_top_to_bottom(monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    monkeypatch.chdir(ROOT)
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    blocks = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    names, shown = {}, []
    for block in blocks:
        *before, last = ast.parse(block).body
        exec(compile(ast.Module(before, []), NOTEBOOK.name, "exec"), names)  # noqa: S102
        shown.append(eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names))  # noqa: S307
    assert len(blocks) == 12
    assert all(each is not None for each in shown)
    (value, low, high), measured = shown[-3]
    assert low < np.median(measured) < high
    assert value == pytest.approx(np.median(measured), rel=0.5)


@cells(
    ("call", "words"),
    [
        (lambda: ReadOptions(scaling="stron"), "no scaling 'stron'; did you mean 'strong'"),
        (lambda: ReadOptions(locations="avg"), "no locations 'avg'"),
        (lambda: rank(fitted(LAWS), 64, by="growht"), "no order 'growht'; did you mean 'growth'"),
        (lambda: fit(experiment(LAWS), None, FitOptions(method="clasic")), "no method 'clasic'"),
        (lambda: fit(experiment(LAWS), None, FitOptions(aggregate="avg")), "no aggregate 'avg'"),
    ],
)
def test_a_word_that_is_none_is_refused_with_those_that_are(call, words):
    with pytest.raises(UsageError) as caught:
        call()
    message, _, meant = words.partition("; ")
    assert caught.value.message == message
    assert meant in caught.value.hint
    assert "known: " in caught.value.hint


def test_words_mean_what_members_of_enumerations_do():
    options = LoadOptions(ReadOptions(scaling="strong"))
    made = load(ROOT / "sample_profiles" / "snap", options)
    # Callers compare the value with the enum member.
    assert made.scaling is Scaling.STRONG
    assert rank(fitted(LAWS), 64, by="loss").order.tolist() == [0]
