"""`cpmodel trace replay` and `cpmodel trace predict`: run times on other machines."""

from __future__ import annotations

import csv
import io
import json
import shutil

import pytest

from cells import cells
from communication import exchange, head_to_head, traced

PLATFORM = """\
latency = "1.5 us"
overhead = "0.3 us"
gap = "0.1 us"
gap_per_byte = "0.08 ns"
eager = "16 KiB"
algorithms = { allreduce = "ring" }
source = "measured with Netgauge"
"""
FAT_TREE = """\
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="node-" suffix="" radical="0-7" speed="2Gf" bw="12.5GBps" lat="1.2us"/>
</platform>
"""


def computing(rank):
    """Exchange with neighbours after computation, which is longer on higher ranks."""
    for _ in range(10):
        rank.compute(100_000 * (1 + rank.rank))
        with rank.region("halo"):
            peers = [peer for peer in (rank.rank - 1, rank.rank + 1) if 0 <= peer < rank.ranks]
            requests = [rank.ireceive(peer, 4096) for peer in peers]
            requests += [rank.isend(peer, 4096) for peer in peers]
            rank.wait(*requests)
        rank.collective("alltoall", 64 * rank.ranks, 64 * rank.ranks)


@pytest.fixture(scope="module")
def line(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("line") / "app.p4", 4, computing)


@pytest.fixture
def told(run, line, tmp_path):
    path = tmp_path / "app.json"
    assert run("trace", "spec", line, "-o", path).status == 0
    return path


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def seconds(run, *arguments):
    done = run("trace", "replay", *arguments, "-f", "json")
    assert done.status == 0, done.err
    return [one["seconds"] for one in json.loads(done.out)["platforms"]]


def test_lines_are_those_of_the_specification(run, line):
    spec = run("trace", "spec", line).out.split("\n\n")[1].splitlines()
    found = rows(run("trace", "replay", line, "-f", "csv").out)
    for row in found:
        word = {"MPI_Irecv": "start to receive", "MPI_Isend": "start to send",
                "MPI_Waitall": "wait", "MPI_Alltoall": "alltoall"}[row["call"]]  # fmt: skip
        assert word in spec[int(row["line"]) - 1]
    assert sum(int(row["operations"]) for row in found) == 200


def test_tables_state_columns_and_units(run, line):
    done = run("trace", "replay", line, "-f", "csv", "--another-platform", "loggopsim")
    assert done.out.splitlines()[0] == (
        "platform,line,call,callpath,ranks,operations,computation[s],in_calls[s],waiting[s],"
        "slowest[s],slowest_rank,share"
    )
    assert {row["platform"] for row in rows(done.out)} == {"infiniband", "loggopsim"}
    document = json.loads(run("trace", "replay", line, "-f", "json").out)
    [platform] = document["platforms"]
    parts = ("computation", "messages", "waiting", "idle")
    assert sum(platform[part] for part in parts) == pytest.approx(platform["seconds"])
    assert platform["latency"] == 5.4e-6
    assert document["seconds_of_trace"] > 0


def test_the_result_is_the_same_each_time_and_from_a_specification(run, line, told):
    first = run("trace", "replay", line, "-f", "csv").out
    assert run("trace", "replay", line, "-f", "csv").out == first
    assert run("trace", "replay", told, "-f", "csv").out == first


def test_two_platforms_are_side_by_side(run, line, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(PLATFORM)
    done = run("trace", "replay", line, "--platform", path, "--another-platform", "loggopsim")
    assert done.status == 0, done.err
    assert "the second platform takes +" in done.out
    assert "mine" in done.out
    slow, fast = seconds(run, line, "--platform", "loggopsim", "--another-platform", path)
    assert slow > fast
    inline = "L=1.5us,o=0.3us,g=0.1us,G=0.08ns,S=16KiB"
    [same] = seconds(run, line, "--platform", inline)
    assert same == pytest.approx(fast, rel=0.05)


def test_two_platforms_of_one_name_have_numbers(run, line):
    done = run("trace", "replay", line, "--another-platform", "infiniband")
    assert "infiniband (1)" in done.out
    assert "the second platform takes 0 %" in done.out


def test_what_if_changes_the_program(run, line):
    [base] = seconds(run, line)
    [half] = seconds(run, line, "--scale-compute", "0.5")
    [none] = seconds(run, line, "--scale-compute", "0")
    [more] = seconds(run, line, "--scale-bytes", "256")
    [single] = seconds(run, line, "--lower", "alltoall=p2p")
    assert none < half < base < more
    assert single == pytest.approx(base, rel=0.05)
    done = run("trace", "replay", line, "--lower", "alltoall=p2p", "--scale-bytes", "0.1")
    assert done.out.splitlines()[0].endswith(
        "of 4 ranks, with --scale-bytes 0.1, --lower alltoall=p2p"
    )
    assert "MPI_Alltoall" not in done.out
    assert "the run of the trace" not in done.out


@cells(
    ("option", "value", "words"),
    [
        ("--scale-compute", "-1", "-1"),
        ("--scale-compute", "nan", "nan"),
        ("--scale-bytes", "inf", "inf"),
        ("--scale-bytes", "1e999999999", "1e999999999"),
        ("--scale-bytes", "1/3", "1/3"),
        ("--lower", "alltoall", "="),
        ("--lower", "altoall=p2p", "alltoall"),
        ("--lower", "alltoall=magic", "pairwise"),
        ("--platform", "infinband", "infiniband"),
        ("--platform", "L=1us", "missing"),
        ("--platform", "L=nan,o=1us,g=1us,G=1ns,S=1", "not a quantity"),
        ("--platform", "L=-1us,o=1us,g=1us,G=1ns,S=1", "between 0"),
        ("--platform", "L=1e300s,o=1us,g=1us,G=1ns,S=1", "between 0"),
        ("--platform", "L=1us,o=1us,g=1us,G=1ns,S=1,x=3", "x=3"),
        ("--platform", "L=1kg,o=1us,g=1us,G=1ns,S=1", "no time"),
        ("--platform", "nowhere.toml", "nowhere.toml"),
    ],
)
def test_bad_options_end_in_one_line(run, line, option, value, words):
    run("trace", "replay", line, option, value).fails(2, words)


def test_options_without_effect_are_refused(run, line):
    run("trace", "replay", line, "--lower", "bcast=p2p").fails(4, "no bcast", "alltoall")
    run("trace", "replay", line, "--selector", "mpich").fails(2, "--smpi")


@cells(
    ("old", "new", "words"),
    [
        ('"1.5 us"', "nan", "latency"),
        ('"1.5 us"', "-1", "latency"),
        ('"1.5 us"', "1e300", "latency"),
        ('"1.5 us"', "inf", "latency"),
        ('"1.5 us"', '"fast"', "latency"),
        ('"1.5 us"', "true", "latency"),
        ('"16 KiB"', "-5", "eager"),
        ('"16 KiB"', "1.5", "eager"),
        ('"16 KiB"', "99999999999999999999999", "64 bits"),
        ('"ring"', '"magic"', "magic"),
        ("allreduce =", "allreduec =", "allreduec"),
        ("gap =", "gapp =", "gapp"),
        ("latency", "[[[[[[", ":1:"),
        ('gap = "0.1 us"\n', "", "gap"),
    ],
)
def test_bad_platform_files_are_refused_with_their_line(run, line, tmp_path, old, new, words):
    path = tmp_path / "mine.toml"
    path.write_text(PLATFORM.replace(old, new))
    run("trace", "replay", line, "--platform", path).fails(2, "mine.toml:", words)


def test_a_platform_that_is_no_text_is_refused(run, line, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    run("trace", "replay", line, "--platform", path).fails(2, "UTF-8")
    path.write_bytes(b"#" * (2 << 20))
    run("trace", "replay", line, "--platform", path).fails(2, "1 MiB")


def test_names_in_platform_files_do_not_control_the_terminal(run, line, tmp_path):
    path = tmp_path / "mi\x1b[31mne.toml"
    path.write_text(PLATFORM.replace("Netgauge", "\\u001b[31m"))
    for form in ("text", "csv"):
        assert "\x1b" not in run("trace", "replay", line, "--platform", path, "-f", form).out


def test_a_program_that_hangs_has_no_run_time(run, tmp_path):
    path = traced(tmp_path / "unsafe", 2, head_to_head)
    assert run("trace", "replay", path).status == 0
    small = "L=1us,o=1us,g=1us,G=1ns,S=1024"
    done = run("trace", "replay", path, "--platform", small)
    done.fails(4, "rank 0 in line 1", "eager limit")


def figure(rank):
    """Rank 1 takes any message, and then that of rank 0, which is the first to arrive."""
    if rank.rank == 1:
        rank.receive(2, 8, posted="ANY")
        rank.receive(0, 8)
    else:
        rank.compute(1_000_000 * rank.rank)
        rank.send(1, 8)


def test_sources_are_those_of_the_trace_if_others_would_block(run, tmp_path):
    path = traced(tmp_path / "trace", 3, figure)
    words = "receives from any source take the messages of the trace"
    assert words in run("trace", "replay", path).out
    assert json.loads(run("trace", "replay", path, "-f", "json").out)["sources_of_trace"] is True


def test_receives_from_any_source_take_the_first_message(run, tmp_path):
    def any_order(rank):
        if rank.rank == 0:
            for source in (1, 2, 3):
                rank.receive(source, 8, posted="ANY")
        else:
            rank.compute(1_000_000 * (4 - rank.rank))
            rank.send(0, 8)

    done = run("trace", "replay", traced(tmp_path / "trace", 4, any_order), "-f", "json")
    document = json.loads(done.out)
    assert document["sources_of_trace"] is False
    assert document["platforms"][0]["seconds"] == pytest.approx(3.0e-3, rel=0.01)


def test_messages_that_nobody_receives_are_refused(run, tmp_path):
    path = traced(tmp_path / "trace", 2, lambda rank: rank.send(1 - rank.rank, 8))
    run("trace", "replay", path).fails(4, "2 messages are sent and 0 received")


def test_a_speedup_divides_the_measured_times(run, line):
    table = json.loads(run("trace", "predict", line, "-f", "json").out)["rows"][0]
    assert table["seconds"] == table["measured"]
    assert table["communication"] + table["computation"] == pytest.approx(table["measured"])
    options = ("--comm-speedup", "4", "--comp-speedup", "2.5")
    faster = json.loads(run("trace", "predict", line, *options, "-f", "json").out)["rows"][0]
    expected = table["communication"] / 4 + table["computation"] / 2.5
    assert faster["seconds"] == pytest.approx(expected)
    text = run("trace", "predict", line, *options).out
    assert "measured in the trace" in text
    assert "lower bound" in text
    assert "upper bound" in text
    assert "bound" not in run("trace", "predict", line).out


def test_a_speedup_is_above_zero(run, line):
    run("trace", "predict", line, "--comm-speedup", "0").fails(2, "speedup")
    run("trace", "predict", line, "--comp-speedup", "-1").fails(2, "-1")


@pytest.mark.parametrize("command", ["replay", "predict"])
def test_endless_specifications_are_refused(run, told, command):
    document = json.loads(told.read_text())
    specification = document["specification"]
    rounds = 10**9
    [loop] = specification["body"]
    specification["operations"] *= rounds // loop["count"]
    loop["count"] = rounds
    for step in loop["body"]:
        step.pop("computing")
    told.write_text(json.dumps(document))
    run("trace", command, told).fails(3, "too many")


def test_a_specification_without_times_has_no_estimate(run, told):
    document = json.loads(told.read_text())
    document["specification"]["seconds"] = 0.0
    told.write_text(json.dumps(document))
    run("trace", "predict", told).fails(4, "run time")


needs_simgrid = pytest.mark.skipif(
    shutil.which("smpirun") is None, reason="needs SimGrid (smpicc, smpirun)"
)


@pytest.fixture
def fat_tree(tmp_path):
    path = tmp_path / "my platform; touch x.xml"
    path.write_text(FAT_TREE)
    return path


@needs_simgrid
def test_the_program_runs_on_simgrid(run, line, fat_tree):
    documents = [
        json.loads(run("trace", "replay", line, "--smpi", "--platform", fat_tree, "--selector",
                       selector, "-f", "json").out)["rows"]
        for selector in ("ompi", "ompi", "mpich")
    ]  # fmt: skip
    (first,), (again,), (other,) = documents
    assert first["seconds"] == again["seconds"] > 0
    assert other["selector"] == "mpich"
    text = run("trace", "replay", line, "--smpi", "--platform", fat_tree).out
    assert "simulated by SMPI with the collectives of ompi" in text


@needs_simgrid
def test_ranks_run_on_the_hosts_of_a_file(run, line, fat_tree, tmp_path):
    def simulated(*options):
        done = run("trace", "replay", line, "--smpi", "--platform", fat_tree, *options, "-f", "csv")
        assert done.status == 0, done.err
        return float(rows(done.out)[0]["seconds[s]"])

    hosts = tmp_path / "hosts; touch x"
    hosts.write_text("".join(f"node-{k}\n" for k in range(8)))
    assert simulated("--smpi-hosts", hosts) == simulated()
    # On one host, messages do not use the network.
    hosts.write_text("# one node\nnode-3:8\n")
    assert simulated("--smpi-hosts", hosts) != simulated()
    smpi = ("trace", "replay", line, "--smpi", "--platform", fat_tree, "--smpi-hosts", hosts)
    hosts.write_text("node-0:2\n")
    run(*smpi).fails(2, "2 hosts for", "n0:4")
    hosts.write_text("node-0\n$(touch x)\n")
    run(*smpi).fails(2, "line 2", "no host")
    run("trace", "replay", line, "--smpi-hosts", hosts).fails(2, "--smpi")


@needs_simgrid
def test_computation_and_sizes_count_on_simgrid(run, line, fat_tree):
    def simulated(*options):
        done = run("trace", "replay", line, "--smpi", "--platform", fat_tree, *options, "-f", "csv")
        assert done.status == 0, done.err
        return float(rows(done.out)[0]["seconds[s]"])

    base = simulated()
    # The rank with most computation has 10 * 0.4 ms.
    assert base > 10 * 0.4e-3
    assert simulated("--scale-compute", "3") > base + 0.0079
    assert simulated("--scale-bytes", "1000") > base
    assert simulated("--lower", "alltoall=p2p") > 0


@needs_simgrid
def test_platforms_that_simgrid_cannot_read_end_in_one_line(run, exchange_trace, tmp_path):
    path = tmp_path / "p.xml"
    run("trace", "replay", exchange_trace, "--smpi", "--platform", path).fails(2, "p.xml")
    run("trace", "replay", exchange_trace, "--smpi").fails(2, "infiniband")
    path.write_text("latency = 1")
    run("trace", "replay", exchange_trace, "--smpi", "--platform", path).fails(2, "XML")
    path.write_text("<platform><nothing/></platform>")
    run("trace", "replay", exchange_trace, "--smpi", "--platform", path).fails(2, "speed")
    path.write_text('<platform><nothing speed="2Gf"/></platform>')
    run("trace", "replay", exchange_trace, "--smpi", "--platform", path).fails(4, "smpirun")


@pytest.fixture(scope="module")
def exchange_trace(tmp_path_factory):
    return traced(tmp_path_factory.mktemp("exchange") / "app.p2", 2, exchange)


def test_without_simgrid_one_line_says_what_is_missing(run, line, fat_tree, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    done = run("trace", "replay", line, "--smpi", "--platform", fat_tree)
    done.fails(2, "smpicc is not installed", "--smpi")
