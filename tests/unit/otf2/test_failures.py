"""Errors for unreadable traces, and for packages that cannot be imported."""

from __future__ import annotations

import random
import sys

import pytest

from callpath_modeler.errors import InputError, PluginError
from callpath_modeler.profile.schema import Reduction
from callpath_modeler.readers.base import Match
from cpmodel_otf2 import TraceReader, library
from trace_writer import Thread, Trace, one_rank, random_events, write_trace

FUZZED = 100


@pytest.fixture
def anchor(tmp_path):
    processes = [[Thread(random_events(5, rank, 2, 120))] for rank in range(2)]
    return write_trace(tmp_path / "trace", Trace(processes))


def damaged(content, rng):
    content = bytearray(content)
    at = rng.randrange(len(content))
    match rng.randrange(5):
        case 0:
            del content[at:]
        case 1:
            content[at : at + 8] = b"\xff" * 8
        case 2:
            content[at : at + 16] = bytes(16)
        case 3:
            content[at:at] = content[at : at + 40]
        case _:
            for _ in range(rng.randrange(1, 10)):
                content[rng.randrange(len(content))] = rng.randrange(256)
    return bytes(content)


def test_damage_gives_values_or_one_line_and_nothing_on_stderr(anchor, capfd):
    rng = random.Random(7)
    files = sorted(path for path in anchor.parent.rglob("*") if path.is_file())
    refused = []
    for _ in range(FUZZED):
        victim = rng.choice(files)
        intact = victim.read_bytes()
        victim.write_bytes(damaged(intact, rng))
        try:
            with TraceReader().open(anchor) as profile:
                for declared in profile.metrics:
                    profile.reduce(declared.metric.name, Reduction.MAX)
        except InputError as error:
            refused.append(error)
        victim.write_bytes(intact)
    assert 0 < len(refused) < FUZZED
    for error in refused:
        assert str(error).startswith(f"{anchor}: ")
        assert "\n" not in str(error)
        assert error.hint
    assert capfd.readouterr() == ("", "")


def test_the_file_that_is_missing_or_cut_is_named(anchor):
    events = anchor.parent / "traces/1.evt"
    intact = events.read_bytes()
    events.write_bytes(intact[: len(intact) // 2])
    with pytest.raises(InputError, match=r"traces/1\.evt: the file is cut off"):
        TraceReader().open(anchor).__enter__()
    events.unlink()
    with pytest.raises(InputError, match=r"traces/1\.evt: the events .* are missing"):
        TraceReader().open(anchor).__enter__()
    events.write_bytes(intact)
    (anchor.parent / "traces/1.def").unlink()
    with pytest.raises(InputError, match=r"traces/1\.def: the file is missing"):
        TraceReader().open(anchor).__enter__()
    (anchor.parent / "traces.def").unlink()
    with pytest.raises(InputError, match=r"traces\.def: the definitions cannot be opened"):
        TraceReader().open(anchor).__enter__()


def test_what_is_named_like_an_anchor_and_is_none_says_so(tmp_path):
    path = tmp_path / "traces.otf2"
    path.write_text("no anchor\n")
    assert TraceReader().match(path) is Match.NAME
    with pytest.raises(InputError, match="not the anchor of an OTF2 trace"):
        TraceReader().open(path).__enter__()


def test_an_anchor_may_have_any_name(tmp_path):
    folder = tmp_path / "trace"
    write_trace(folder, one_rank(("enter", 0, "main"), ("leave", 1, "main")))
    for name in ("traces.otf2", "traces.def", "traces"):
        (folder / name).rename(folder / name.replace("traces", "eztrace_log"))
    with TraceReader().open(folder / "eztrace_log.otf2") as profile:
        assert len(profile.call_tree) == 1


def test_a_package_that_does_not_load_is_named_with_what_to_do(anchor, monkeypatch):
    monkeypatch.setitem(sys.modules, "_otf2", None)
    with pytest.raises(PluginError, match="otf2 does not load") as caught:
        TraceReader().open(anchor).__enter__()
    assert "wheel" in caught.value.hint


def test_a_package_made_in_another_way_is_read_by_its_interface(anchor, monkeypatch):
    with TraceReader().open(anchor) as profile:
        expected = profile.per_location("time")

    def changed():
        raise library.InternalsChangedError("OTF2_Reader_Open")

    monkeypatch.setattr(library, "load", changed)
    with TraceReader().open(anchor) as profile:
        assert (profile.per_location("time") == expected).all()


def test_a_library_without_the_functions_is_told_from_one_that_does_not_load(monkeypatch):
    import _otf2

    monkeypatch.setattr(_otf2.Config, "conf", None)
    with pytest.raises(library.InternalsChangedError):
        library.load()


def test_ctrl_c_in_a_callback_is_not_lost(anchor, monkeypatch):
    from cpmodel_otf2 import library

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(library, "_call_callbacks", lambda *_: {"Enter": interrupted})
    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt):
        TraceReader().open(anchor).__enter__()
    assert sys.unraisablehook is hook


def test_no_trace_is_opened_without_need():
    # A separate process is needed, because other tests import the package.
    import subprocess

    code = (
        "import sys; from cpmodel_otf2 import TraceReader; TraceReader()\n"
        "print(any(name.split('.')[0] in {'otf2', '_otf2'} for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
