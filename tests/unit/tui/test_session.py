"""The content of the browser, without a terminal."""

from __future__ import annotations

import numpy as np
import pytest

from callpath_modeler.analysis.answer import answer_at
from callpath_modeler.analysis.answer_bands import AnswerInputs
from callpath_modeler.errors import UsageError
from callpath_modeler.profile.outline import SHARED
from callpath_modeler.profile.tree_views import ViewKind
from callpath_modeler.profile.view_request import Sort
from callpath_modeler.report.outlined_view import node_columns
from callpath_modeler.report.views_text import ForecastView
from callpath_modeler.tui.session import Session
from callpath_modeler.tui.state import PreparedForecast
from cells import cells
from synthetic import POINTS, fitted

P = np.array(POINTS)
NAN = float("nan")
VALUES = {
    "main": list(10 + 0 * P),
    "main/grows": list(1.0 * P),
    "main/grows/MPI_Wait": list(0.5 * P),
    "main/grows/f": list(2 + 0 * P),
    "main/grows/f/grows": list(1 + 0 * P),
    "main/grows/f/grows/MPI_Wait": list(0.1 * P),
    "main/MPI_Wait": list(3 + 0 * P),
    "main/small": list(0.01 + 0 * P),
    "main/small/g": list(0.02 + 0 * P),
    "main/tiny": list(0.01 + 0 * P),
    "main/late": [NAN, NAN, NAN, 4.0, 5.0],
}


@pytest.fixture(scope="module")
def known():
    return AnswerInputs(fitted(VALUES))


@pytest.fixture
def session(known):
    return Session(answer_at(known, 128.0))


def text(session):
    """Return the lines as text: indented, ``+`` closed, ``-`` open, ``>`` under the cursor."""
    lines = []
    for place in range(len(session.outline)):
        line = session.outline.line(place)
        name = f"... {len(line.nodes)}" if line.is_rest else session.view.name(line.node)
        sign = "-" if session.outline.is_open[place] else "+" if line.is_closed else ""
        lines.append("  " * line.depth + sign + name + ">" * (place == session.cursor))
    return lines


def twin(session):
    """Return the same view from a view request."""
    return ForecastView(session.forecast, session.view_request())


def check_twin(session):
    other = twin(session)
    ours, theirs = node_columns(session.outline), node_columns(other.outline)
    assert ours == theirs
    assert session.check().holds
    assert other.check.holds


def test_a_session_begins_with_the_hot_path_open_and_its_end_selected(session):
    assert text(session) == ["-main", "  +grows>", "  MPI_Wait", "  ... 3"]
    session.show(ViewKind.BOTTOM_UP)
    assert text(session)[:2] == ["-grows", "  main>"]


def test_every_view_keeps_its_cursor_and_what_is_open(session):
    session.open()
    before = text(session)
    session.show(ViewKind.FLAT)
    session.show(ViewKind.TOP_DOWN)
    assert text(session) == before


def test_opening_and_closing(session):
    session.open()
    assert text(session) == [
        "-main",
        "  -grows>",
        "    MPI_Wait",
        "    +f",
        "  MPI_Wait",
        "  ... 3",
    ]
    session.open()  # is open already
    assert session.cursor == 1
    session.go_in()
    assert session.cursor == 2
    session.close()  # nothing to close
    assert session.cursor == 2
    session.go_out()
    assert session.cursor == 1
    session.close()
    assert text(session) == ["-main", "  +grows>", "  MPI_Wait", "  ... 3"]
    session.toggle()
    session.toggle()
    assert not session.outline.is_open[1]


def test_everything_below_opens_and_single_nodes_close_again(session):
    session.open_all()
    assert text(session)[1:6] == [
        "  -grows>",
        "    MPI_Wait",
        "    -f",
        "      -grows",
        "        MPI_Wait",
    ]
    session.go(3)
    session.close()
    assert text(session)[3] == "    +f>"
    check_twin(session)
    session.open()
    assert text(session)[3:5] == ["    -f>", "      -grows"]
    session.go(0)
    session.open_all()
    session.close_all()
    assert text(session) == ["+main>"]
    check_twin(session)


def test_zooming_in_and_out(session):
    session.open_all()
    session.go(3)
    session.zoom()
    assert text(session) == ["-f>", "  -grows", "    MPI_Wait"]
    check_twin(session)
    assert twin(session).request.zoom == "main/grows/f"
    session.zoom()  # it is zoomed to this node already
    session.unzoom()
    assert text(session)[0] == "-main"
    assert session.node == 3
    session.unzoom()
    assert text(session)[0] == "-main"


def test_the_hot_path_goes_on_from_anywhere(session):
    session.follow_hot_path()
    assert text(session)[1] == "  +grows>"  # it has most of the cost itself
    session.hide_or_show_small()
    session.go(text(session).index("  +small"))
    session.follow_hot_path()
    assert text(session)[session.cursor] == "    g>"
    session.caller()
    assert text(session)[session.cursor] == "  -small>"


def test_what_is_small_shares_a_line_until_asked_for(session):
    session.hide_or_show_small()
    assert [line.strip("+ ") for line in text(session)[3:]] == ["small", "tiny", "late"]
    session.hide_or_show_small()
    session.go(3)
    assert session.node == SHARED
    session.open()  # no node: nothing to open
    session.zoom()
    assert text(session)[3] == "  ... 3>"


def test_the_cursor_stays_on_a_line_that_is_shared(session):
    session.go(3)
    session.lead_with_other()
    assert session.node == SHARED


def test_siblings_come_in_any_order(session):
    found = {}
    session.hide_or_show_small()
    for _ in session.forecast.sorts:
        found[session.sort] = [line.strip(" +>") for line in text(session)[1:]]
        check_twin(session)
        session.sort_next()
    assert session.sort is Sort.VALUE
    assert found[Sort.NAME] == ["MPI_Wait", "grows", "late", "small", "tiny"]
    assert found[Sort.MEASURED][:3] == ["grows", "late", "MPI_Wait"]
    assert found[Sort.VALUE][-1] == "late"  # without a model
    session.turn_round()
    assert [line.strip(" +>") for line in text(session)[1:]][:2] == ["tiny", "small"]
    assert (
        text(session)[-1].strip(" >") == "late"
    )  # nodes without a value come last in both directions
    check_twin(session)


def test_a_filter_keeps_what_matches_and_what_leads_there(session):
    session.filter("**/f/**/MPI_*")
    session.open_all()
    assert text(session) == [
        "-main", "  -grows>", "    -f", "      -grows", "        MPI_Wait", "    ... 1", "  ... 4"
    ]  # fmt: skip
    check_twin(session)
    session.show(ViewKind.FLAT)
    assert text(session) == ["MPI_Wait>", "... 7"]
    check_twin(session)
    before = text(session)
    with pytest.raises(UsageError, match="no call path matches"):
        session.filter("nonsense")
    assert text(session) == before
    session.filter("")
    assert len(text(session)) > 2


def test_a_search_goes_to_the_costliest_first_and_shows_what_was_hidden(session):
    assert session.search("mpi_wait") == 3
    assert session.view.tree.path(session.node) == "main/grows/MPI_Wait"
    assert session.next_match() == (2, 3)
    assert session.view.tree.path(session.node) == "main/grows/f/grows/MPI_Wait"
    assert session.next_match(-1) == (1, 3)
    assert session.search("tiny") == 1
    assert session.view.name(session.node) == "tiny"
    assert not session.hides
    assert session.search("nonsense") == 0
    assert session.next_match() == (0, 0)


def test_a_search_leaves_a_filter_that_hides_what_was_found(session):
    session.filter("main/MPI_Wait")
    session.search("tiny")
    assert session.view.name(session.node) == "tiny"
    assert session.pattern == ""


def test_another_target_ranks_anew_and_the_cursor_stays(session, known):
    session.show(ViewKind.FLAT)
    assert text(session)[0] == "grows>"
    session.retarget(PreparedForecast(answer_at(known, 2.0)))
    assert text(session)[:3] == ["main", "MPI_Wait", "grows>"]
    check_twin(session)


def test_at_infinity_shares_decide(known):
    session = Session(answer_at(known, np.inf))
    assert text(session)[:2] == ["-main", "  +grows>"]
    check_twin(session)


def test_bands_come_later(known):
    session = Session(answer_at(known, 128.0, bands=False))
    own, _ = session.values(np.arange(2))
    assert np.isnan(own.low).all()
    assert (own.trust == -1).all()
    complete = session.forecast.with_bands()
    session.retarget(PreparedForecast(complete))
    expected = answer_at(known, 128.0)
    np.testing.assert_array_equal(complete.bands.costs.inclusive, expected.bands.costs.inclusive)
    assert complete.total == expected.total
    assert session.forecast.with_bands(lambda: False) is None


def test_a_program_of_one_call_path(known):
    del known
    session = Session(answer_at(AnswerInputs(fitted({"main": list(P)})), 128.0))
    for kind in ViewKind:
        session.show(kind)
        for act in (
            session.open,
            session.close,
            session.open_all,
            session.close_all,
            session.zoom,
            session.unzoom,
            session.follow_hot_path,
            session.caller,
            session.toggle,
        ):
            act()
        assert text(session) == ["main>"]
        check_twin(session)


def test_a_session_with_another_program_begins_anew(session):
    session.open_all()
    session.retarget(
        PreparedForecast(
            answer_at(AnswerInputs(fitted({"main": list(P), "main/x": list(P)})), 64.0)
        )
    )
    assert text(session) == ["-main", "  x>"]


ACTIONS = (
    "open", "close", "go_in", "go_out", "toggle", "open_all", "close_all", "caller",
    "follow_hot_path", "zoom", "unzoom", "sort_next", "turn_round", "lead_with_other",
    "hide_or_show_small",
)  # fmt: skip


@cells("seed", range(6))
def test_no_view_loses_cost_and_every_view_can_be_said_in_words(known, seed):
    rng = np.random.default_rng(seed)
    session = Session(answer_at(known, 128.0))
    for _ in range(60):
        what = rng.integers(0, 5)
        if what == 0:
            session.show(list(ViewKind)[rng.integers(0, 3)])
        elif what == 1:
            session.go(int(rng.integers(0, len(session.outline))))
        elif what == 2:
            session.filter(str(rng.choice(["", "**/MPI_*", "main/grows/**", "**/g"])))
        else:
            getattr(session, str(rng.choice(ACTIONS)))()
        assert 0 <= session.cursor < len(session.outline)
        check_twin(session)


def test_lines_are_not_opened_without_end(known, monkeypatch):
    monkeypatch.setattr("callpath_modeler.tui.state.MOST_LINES", 4)
    session = Session(answer_at(known, 128.0))
    session.go(0)
    session.open_all()
    assert session.is_cut
    assert text(session) == [
        "-main>", "  -grows", "    MPI_Wait", "    -f", "      +grows", "  MPI_Wait", "  ... 3"
    ]  # fmt: skip
    check_twin(session)
