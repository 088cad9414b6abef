"""Plots for papers: their contents, their looks, and what they refuse."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

import callpath_modeler as cpm
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.profile.schema import Metric, Reduction
from callpath_modeler.profile.view_request import ViewRequest
from callpath_modeler.report.excess_text import ExcessView
from callpath_modeler.report.model_plot import WIDTH, ModelPlot, format_of_plot, label
from callpath_modeler.report.plot import excess_drawing, file_of, model_drawing, ranking_drawing
from cells import cells
from synthetic import experiment

mpl = pytest.importorskip("matplotlib", reason="plots need matplotlib: the extra [plot]")

PICTURES = Path(__file__).parent / "pictures"
ANEW = bool(os.environ.get("CPMODEL_NEW_PICTURES"))
DRAWN_WITH = "3.11"
"""The version of matplotlib that drew the pictures; others set text a little differently."""
TOLERANCE = 6.0
"""Root of the mean squared difference of pixels, of 255."""

POINTS = (2.0, 4.0, 8.0, 16.0, 32.0)
NAN = float("nan")


def repeated(*values, spread=0.03):
    """Three repetitions of each value."""
    return [[v * (1 - spread), v, v * (1 + 2 * spread)] for v in values]


LAWS = {
    "main": repeated(1.0, 1.0, 1.0, 1.0, 1.0),
    "main/solve": repeated(*(8.0 + 0 * p for p in POINTS)),
    "main/solve/halo_exchange": repeated(*(0.1 * p for p in POINTS)),
    "main/solve/MPI_Allreduce": repeated(*(0.4 * np.log2(p) for p in POINTS), spread=0.2),
    "main/zero": repeated(*[0.0] * 5),
    "main/late": [[0.0] * 3] * 2 + repeated(0.1, 0.3, 0.7),
}


@pytest.fixture(scope="module")
def fitted():
    return cpm.fit(experiment(LAWS, POINTS, reduction=Reduction.MEAN))


@pytest.fixture
def axes():
    from matplotlib.figure import Figure

    return Figure().add_subplot()


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def line(axes, name):
    """The points of the line that the legend calls so."""
    (found,) = (each for each in axes.get_lines() if each.get_label() == name)
    return [np.asarray(values, float) for values in found.get_data()]


def legend(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


# What a plot of a model holds


def test_ticks_are_the_measured_scales_and_the_target(fitted, axes):
    fitted["main/solve/halo_exchange"].plot(128, axes=axes)
    assert sorted(axes.get_xticks()) == [*POINTS, 128]
    assert {text.get_text() for text in axes.get_xticklabels()} == {
        "2", "4", "8", "16", "32", "128"
    }  # fmt: skip
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert not len(axes.get_xticks(minor=True))


def test_the_curve_and_its_band_are_what_predict_returns(fitted, axes):
    model = fitted["main/solve/halo_exchange"]
    model.plot(128, axes=axes)
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    grid, value = (np.concatenate(both) for both in zip(
        line(axes, "model, O(p)"), line(axes, "beyond the data"), strict=True))  # fmt: skip
    said = model.predict(np.unique(grid))
    np.testing.assert_allclose(np.interp(np.unique(grid), grid, value), said.value, rtol=1e-9)
    for at, low, high in zip(np.unique(grid), said.low, said.high, strict=True):
        here = corners[np.isclose(corners[:, 0], at, rtol=1e-12), 1]
        np.testing.assert_allclose([here.min(), here.max()], [low, high], rtol=1e-9)


def test_every_repetition_and_its_centre_have_points(fitted, axes):
    fitted["main/solve/MPI_Allreduce"].plot(axes=axes)
    at, values = line(axes, "repetitions")
    assert at.tolist() == np.repeat(POINTS, 3).tolist()
    np.testing.assert_allclose(values, np.ravel(LAWS["main/solve/MPI_Allreduce"]))
    np.testing.assert_allclose(line(axes, "measured")[1], fitted.measured[3])


def test_the_target_has_its_value_and_its_band(fitted, axes):
    model = fitted["main/solve/halo_exchange"]
    model.plot(128, axes=axes)
    said = model.predict([128])
    at, value = line(axes, "target, predicted")
    assert at == [128]
    assert value == pytest.approx(said.value)
    ends = [
        each.get_data()[1] for each in axes.get_lines() if list(each.get_data()[0]) == [128] * 2
    ]
    np.testing.assert_allclose(ends, [[said.low[0], said.high[0]]])


@pytest.mark.parametrize("target", [1.5, 3, 7.5, 16, 31])
def test_a_target_inside_or_below_the_data_has_its_exact_value(fitted, axes, target):
    model = fitted["main/solve/MPI_Allreduce"]
    model.plot(target, axes=axes)
    said = model.predict([target])
    at, value = line(axes, "target, predicted")
    assert (at, value) == (target, pytest.approx(said.value, rel=1e-12))
    assert axes.get_xlim()[0] < target
    both = (each.get_data() for each in axes.get_lines())
    (ends,) = (values for points, values in both if list(points) == [target, target])
    np.testing.assert_allclose(ends, [said.low[0], said.high[0]])


def test_without_a_target_it_is_four_times_the_largest_scale(fitted, axes):
    fitted["main/solve"].plot(axes=axes)
    assert axes.get_xticks().max() == 128


def test_at_infinity_there_is_no_target(fitted, axes):
    fitted["main/solve"].plot(float("inf"), axes=axes)
    assert axes.get_xticks().max() == 32
    assert not any("target" in name for name in legend(axes))


def test_values_have_the_units_of_all_tables(fitted, axes):
    fitted["main/solve/halo_exchange"].plot(128, axes=axes)
    assert "1.00 s" in [text.get_text() for text in axes.get_yticklabels()]
    assert axes.get_ylabel() == "time, exclusive\nmean over processes"
    assert axes.get_title(loc="left") == "main/solve/halo_exchange"


def test_zeros_on_a_logarithmic_axis_are_marked_at_its_edge(fitted, axes):
    fitted["main/late"].plot(axes=axes)
    at, values = line(axes, "measured: zero")
    assert at.tolist() == [2, 4]
    assert set(values) == {axes.get_ylim()[0]}


def test_an_outlier_beyond_the_axis_is_marked_at_its_edge(axes):
    values = [[p * (1 + 0.001 * k) for k in range(5)] for p in POINTS]
    values[2][4] = 1e9
    options = cpm.FitOptions(aggregate="median")
    cpm.fit(experiment({"main": values}, POINTS), options=options)["main"].plot(axes=axes)
    assert line(axes, "repetitions: above the axis")[0].tolist() == [8.0]


def test_what_costs_nothing_is_refused(fitted, axes):
    with pytest.raises(DataError, match="zero in every run"):
        fitted["main/zero"].plot(axes=axes)


def test_what_has_no_model_shows_its_measurements(axes):
    values = {"main": POINTS, "main/once": [NAN] * 3 + [1.0, 2.0]}
    cpm.fit(experiment(values, POINTS))["main/once"].plot(axes=axes)
    assert line(axes, "measured")[1].tolist() == [1.0, 2.0]
    assert legend(axes)[-1] == "no model: too few points"
    assert axes.get_xticks().max() == 32


def test_three_points_and_a_target_far_away_have_a_plot(axes):
    cpm.fit(experiment({"main": [1.0, 2.0, 4.0]}, (2, 4, 8)))["main"].plot(1e6, axes=axes)
    assert "1000000" in [text.get_text() for text in axes.get_xticklabels()]


def test_parameters_that_are_held_are_named(axes):
    pd = pytest.importorskip("pandas")
    rows = [("f", p, n, p * n) for p in (2, 4, 8, 16, 32) for n in (1, 2, 4, 8, 16)]
    frame = pd.DataFrame(rows, columns=["c", "p", "n", "t"])
    several = cpm.fit(cpm.from_frame(frame, callpath="c", parameters=["p", "n"]))
    several.holding({"n": 8})["f"].plot(axes=axes)
    assert axes.get_xlabel() == "p (at n = 8)"
    np.testing.assert_allclose(line(axes, "measured")[1], np.array([2, 4, 8, 16, 32]) * 8)


def test_linear_axes_begin_at_zero(fitted, axes):
    ranking = cpm.rank(fitted, 64)
    model_drawing(ModelPlot.of_ranking(ranking, 2, linear=True)).draw(axes)
    assert axes.get_yscale() == "linear"
    assert axes.get_ylim()[0] == 0


def test_a_measured_target_is_called_so(fitted, axes):
    ranking = cpm.rank(fitted, 32)
    model_drawing(ModelPlot.of_ranking(ranking, 2)).draw(axes)
    assert line(axes, "target, measured")[1] == pytest.approx(ranking.value[2])


# What a plot of a ranking holds


def names(axes):
    return [text.get_text() for text in axes.texts]


def test_a_ranking_has_its_rows_in_order_then_the_others_and_the_total(fitted, axes):
    cpm.rank(fitted, 1024).plot(2, axes=axes)
    assert names(axes)[::2] == [
        "main/solve/halo_exchange", "main/late", "4 others", "total"
    ]  # fmt: skip
    assert axes.yaxis_inverted()


def test_a_ranking_shows_its_values_bands_and_marks_of_trust(fitted, axes):
    ranking = cpm.rank(fitted, 1024)
    ranking.plot(2, axes=axes)
    first = ranking.order[:2]
    np.testing.assert_allclose(
        line(axes, "predicted at p = 1024")[0][[0, 1, 3]],
        [*ranking.value[first], ranking.total[0]],
    )
    np.testing.assert_allclose(
        line(axes, "measured at p = 32")[0],
        [*ranking.at_largest[first], np.nansum(ranking.at_largest) - sum(ranking.at_largest[first]),
         ranking.total_at_largest],
    )  # fmt: skip
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    np.testing.assert_allclose(bars[0], [ranking.low[first[0]], ranking.high[first[0]]])
    assert names(axes)[1].count("●") == ranking.trust[first[0]]
    assert "95% band" in legend(axes)


def test_a_measured_target_has_intervals_and_what_models_say(fitted, axes):
    cpm.rank(fitted, 32).plot(axes=axes)
    assert {"measured at p = 32", "predicted", "95% interval"} <= set(legend(axes))


def test_zeros_of_a_ranking_are_at_the_edge(fitted, axes):
    cpm.rank(fitted, 64).plot(axes=axes)
    assert "zero, or left of the axis" in legend(axes)


def test_what_does_not_add_up_has_no_total(axes):
    metric = Metric("least", "s", additive=False)
    models = cpm.fit(experiment({"main": POINTS, "main/f": POINTS}, POINTS, metric=metric), "least")
    cpm.rank(models, 64).plot(axes=axes)
    assert "total" not in names(axes)


def test_a_ranking_at_infinity_has_no_plot(fitted):
    with pytest.raises(UsageError, match="at infinity"):
        cpm.rank(fitted, float("inf")).plot()


@pytest.mark.parametrize("top", [0, -1, 1.5, "all"])
def test_a_number_of_rows_is_from_one_on(fitted, top):
    with pytest.raises(UsageError, match="no number from 1 on"):
        cpm.rank(fitted, 64).plot(top)


def test_more_rows_than_a_page_holds_are_refused():
    many = cpm.fit(experiment({f"f{k}": POINTS for k in range(200)}, POINTS))
    with pytest.raises(UsageError, match="at most 120 rows, not 200"):
        cpm.rank(many, 64).plot(200)


# What a plot of excess work holds


def test_bars_are_the_excess_work_of_the_last_pair(fitted, axes):
    losses = cpm.losses(fitted.experiment)
    losses.plot(axes=axes)
    found = {bar.get_width() for bar in axes.patches}
    for values in (losses.excess.exclusive[:, -1], losses.excess.inclusive[:, -1]):
        for value in values[np.abs(values) > 0.01]:
            assert any(np.isclose(value, width) for width in found)
    assert {"inclusive", "exclusive"} <= set(legend(axes))
    labels = [text.get_text().strip("~ ") for text in axes.get_yticklabels()]
    assert labels[:2] == ["main", "solve"]
    assert "p = 2 to 32" in axes.texts[-1].get_text()


def test_the_flat_view_of_losses_has_a_plot(fitted, axes):
    cpm.losses(fitted.experiment).plot(2, view="flat", axes=axes)
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels[0].strip("~") == "halo_exchange"
    assert labels[-1].endswith("more")


def test_an_unknown_view_is_refused(fitted):
    with pytest.raises(UsageError, match="no view 'sideways'"):
        cpm.losses(fitted.experiment).plot(view="sideways")


def test_deep_trees_have_a_plot_of_limited_length():
    deep = {"/".join(["f"] * k): [1.0, 2.0] for k in range(1, 300)}
    losses = cpm.losses(experiment(deep, (2.0, 4.0)))
    assert excess_drawing(ExcessView(losses, ViewRequest())).height < 12


# Files


def drawings(fitted):
    ranking = cpm.rank(fitted, 1024)
    losses = cpm.losses(fitted.experiment, pair=(4, 32))
    return {
        "model": model_drawing(ModelPlot.of_ranking(ranking, 3)),
        "ranking": ranking_drawing(ranking, ranking.order[:4]),
        "excess": excess_drawing(ExcessView(losses, ViewRequest(least=0.01))),
    }


@pytest.mark.parametrize("name", ["model", "ranking", "excess"])
def test_plots_look_as_they_did(fitted, tmp_path, monkeypatch, name):
    """CPMODEL_NEW_PICTURES=1 keeps the new ones: look at them."""
    from matplotlib.testing.compare import compare_images

    from callpath_modeler.report import model_plot

    if not mpl.__version__.startswith(f"{DRAWN_WITH}."):
        pytest.skip(f"the pictures are of matplotlib {DRAWN_WITH}, this is {mpl.__version__}")
    monkeypatch.setattr(model_plot, "_DOTS_PER_INCH", 100)
    content = file_of(drawings(fitted)[name], "png")
    kept = PICTURES / f"{name}.png"
    if ANEW:
        kept.write_bytes(content)
    found = tmp_path / f"{name}.png"
    found.write_bytes(content)
    assert compare_images(str(kept), str(found), TOLERANCE) is None


def test_a_changed_plot_is_another_picture(fitted, tmp_path):
    """The comparison of pictures can fail."""
    from matplotlib.testing.compare import compare_images

    paths = []
    for target in (1024, 4096):
        ranking = cpm.rank(fitted, target)
        path = tmp_path / f"{target}.png"
        path.write_bytes(file_of(ranking_drawing(ranking, ranking.order[:4]), "png"))
        paths.append(str(path))
    assert compare_images(*paths, TOLERANCE) is not None


def test_the_same_plot_is_the_same_file_in_every_process(tmp_path):
    forms = ("pdf", "svg", "png")
    script = (
        "import sys, callpath_modeler as cpm\n"
        "from pathlib import Path\n"
        "from synthetic import experiment\n"
        "from callpath_modeler.report.plot import file_of, ranking_drawing\n"
        "ranking = cpm.rank(cpm.fit(experiment({'main': [1., 2, 4, 8, 16]})), 64)\n"
        f"for form in {forms}:\n"
        "    content = file_of(ranking_drawing(ranking, ranking.order), form)\n"
        "    Path(sys.argv[1], form).write_bytes(content)\n"
    )
    for seed in ("1", "2"):
        style = "figure.facecolor: red\ntext.usetex: True\nsavefig.bbox: tight\n"
        (tmp_path / "matplotlibrc").write_text(style if seed == "2" else "")
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "MPLCONFIGDIR": str(tmp_path),
            "PYTHONPATH": os.pathsep.join(sys.path),
        }
        (tmp_path / seed).mkdir()
        command = [sys.executable, "-c", script, str(tmp_path / seed)]
        subprocess.run(command, capture_output=True, check=True, env=environment)
    for form in forms:
        content = (tmp_path / "1" / form).read_bytes()
        assert content == (tmp_path / "2" / form).read_bytes(), form
        assert len(content) > 1000, form
        assert b"202" not in content[:2000] or form == "png", form  # no date


def test_a_figure_is_as_wide_as_a_column(fitted):
    for drawing in drawings(fitted).values():
        root = ET.fromstring(file_of(drawing, "svg"))  # noqa: S314 - ours
        assert root.get("width") == f"{WIDTH * 72:g}pt"


def test_a_new_figure_is_one_of_pyplot(fitted):
    import matplotlib.pyplot as plt

    axes = cpm.rank(fitted, 64).plot()
    assert axes.figure is plt.gcf()
    assert axes.figure.get_figwidth() == WIDTH


def test_the_settings_of_a_user_stay(fitted):
    with mpl.rc_context({"font.size": 33.0}):
        cpm.rank(fitted, 64).plot()
        assert mpl.rcParams["font.size"] == 33.0


def test_the_first_plot_keeps_what_a_backend_sets(tmp_path):
    """The backend of a notebook makes figures appear by a setting, when it is loaded."""
    (tmp_path / "inline.py").write_text(
        "import matplotlib\n"
        "from matplotlib.backends.backend_agg import *\n"
        "from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas\n"
        "matplotlib.interactive(True)\n"
    )
    code = (
        "import callpath_modeler as cpm, matplotlib\n"
        "model = cpm.fit(cpm.load('sample_profiles/stencil'))['main/find_owners']\n"
        "model.plot()\n"
        "assert matplotlib.is_interactive()\n"
    )
    there = {"MPLBACKEND": "module://inline", "PYTHONPATH": str(tmp_path), "HOME": str(tmp_path)}
    root = Path(__file__).resolve().parents[4]
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root, env={**os.environ, **there})


def test_the_page_on_plots_runs(tmp_path, monkeypatch):
    root = Path(__file__).resolve().parents[4]
    page = (root / "docs" / "how-to" / "plot.md").read_text("utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "sample_profiles").symlink_to(root / "sample_profiles")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "plot.md", "exec"), {})  # noqa: S102
    assert (tmp_path / "model.pdf").read_bytes().startswith(b"%PDF")


# Foreign text

HOSTILE = (
    "$x^2$",
    "a$b",
    r"\$",
    r"$\frac{",
    "\x1b[31m\x07\u202e",
    "中文",
    "{{}}%s",
    "\ud800",
    "&<b>",
)


@cells("name", HOSTILE)
def test_hostile_names_are_drawn_as_text(name):
    parameter = f"p{name}" if name.isprintable() else "p"
    metric = Metric(f"t{name}", f"s{name}")
    values = {"main": POINTS, f"main/{name}": POINTS}
    hostile = experiment(values, POINTS, parameter=parameter, metric=metric)
    models = cpm.fit(hostile, f"t{name}")
    for drawing in (
        model_drawing(ModelPlot.of_ranking(cpm.rank(models, 64), 1)),
        ranking_drawing(cpm.rank(models, 64), np.arange(2)),
        excess_drawing(ExcessView(cpm.losses(hostile, f"t{name}"), ViewRequest())),
    ):
        content = file_of(drawing, "svg")
        ET.fromstring(content)  # noqa: S314 - ours
        text = content.decode()
        assert not any(ord(sign) < 32 and sign != "\n" for sign in text)
        assert "\u202e" not in text
        if name in {"$x^2$", "\ud800"}:
            assert file_of(drawing, "pdf").startswith(b"%PDF")
            assert file_of(drawing, "png").startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("text", "shown"),
    [("$x$", r"\$x\$"), (r"\$", r"\\$"), ("\x1b", r"\x1b"), ("中", r"\u4e2d"), ("µ∞●○½", "µ∞●○½")],
)
def test_a_label_has_no_mathematics_and_only_signs_that_the_font_has(text, shown):
    assert label(text) == shown


@pytest.mark.parametrize("name", ["a.pdf", "b.SVG", "c.d.png"])
def test_the_ending_is_the_format(name):
    assert format_of_plot(Path(name)) == name.rpartition(".")[2].lower()


@pytest.mark.parametrize("name", ["a.jpg", "a", ".pdf", "a.pdf.gz"])
def test_other_endings_are_refused_with_those_that_there_are(name):
    with pytest.raises(UsageError, match="no plot has this ending") as refused:
        format_of_plot(Path(name))
    assert ".pdf, .svg, .png" in refused.value.hint


def test_without_matplotlib_the_extra_is_named(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for plotted in (fitted["main"], cpm.rank(fitted, 64), cpm.losses(fitted.experiment)):
        with pytest.raises(UsageError, match="plots need matplotlib") as refused:
            plotted.plot()
        assert refused.value.hint == "pip install 'callpath-modeler[plot]'"
