"""Fuzz targets: every reader, the store, TOML files, and the small languages of users."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Callable
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import click
import numpy as np

import table_files
from callpath_modeler.errors import DataError, UsageError
from callpath_modeler.fitted import Fitted
from callpath_modeler.profile.calltree import ROOT, CallTree
from callpath_modeler.profile.schema import Region
from fuzz import seeds
from fuzz.forms import (
    Checked,
    Counted,
    Cubex,
    Directory,
    Gzipped,
    History,
    Single,
    Store,
    Zipped,
    unzipped,
)
from fuzz.judge import check_refusal


@dataclass(frozen=True)
class Target:
    """Code that processes foreign bytes.

    Attributes
    ----------
    name : name of the target
    form : form of its inputs on disk
    read : function that reads a file or a directory, or raises an error of this project
    seeds : valid inputs
    largest : maximum bytes of an input
    """

    name: str
    form: Single
    read: Callable[[Path], None]
    seeds: Callable[[], list[bytes]]
    largest: int = 1 << 16


@cache
def _registry(reader: str):
    from callpath_modeler.readers.registry import Registry

    return Registry.of_installed(reader)


def _reader(name: str, *others: str) -> Callable[[Path], None]:
    """Return a function that reads a whole profile, as plugin authors and commands do."""

    def read(path: Path) -> None:
        from callpath_modeler.readers.assemble import ReadOptions, assemble
        from callpath_modeler.readers.discover import discover
        from callpath_modeler.testing.checks import check_tree, check_values, read_all

        for each in (name, *others):
            registry = _registry(each)
            (reader,) = registry.readers
            reader.match(path)
            from callpath_modeler.readers.base import opened_runs

            with opened_runs(reader, path) as runs:
                # The runs of a table have one call tree.
                for tree in {
                    id(run.source.call_tree): run.source.call_tree for run in runs
                }.values():
                    check_tree(tree)
                for source in (run.source for run in runs):
                    for reduced in read_all(source).values():
                        check_values(reduced, len(source.call_tree))
                    source.findings()
        registry = _registry(name)
        assemble(discover([path], registry, findings=[]), registry, ReadOptions(lines=True))

    return read


def _store(path: Path) -> None:
    from callpath_modeler import store

    experiment = store.read_experiment(path)
    for values in experiment.columns.values():
        store.read_models(path, experiment, values.metric.name, None)
        np.nansum(values.exclusive)
    store.verify(path)


def _shard(path: Path) -> None:
    from callpath_modeler import shards
    from callpath_modeler.studies.loading import LoadOptions, load_shards

    shards.read(path)
    load_shards([path], LoadOptions())


def _history(path: Path) -> None:
    """Judge the commits of a history, and score its predictions; it may have either."""
    known = 0
    for words in (("watch", "status"), ("score",)):
        try:
            _command(*words, str(path))
            known += 1
        except DataError as error:
            check_refusal(error, path)
    if not known:
        raise DataError("no commits and no predictions", hint="cpmodel watch add")


def _expectations(path: Path) -> None:
    """Check the models of a small program."""
    from callpath_modeler.studies.expectation_check import check

    check(_models(), path)


@cache
def _models() -> Fitted:
    """Return models of the call paths and metrics that the expectations of the seed name."""
    from callpath_modeler.profile.groups import MetricValues
    from callpath_modeler.profile.schema import Metric
    from callpath_modeler.studies.pipeline import fit
    from synthetic import POINTS, experiment

    points = np.array(POINTS)
    laws = {"main": 4 + 0 * points, "main/f": 0.5 * points, "main/Comm": 1 + np.log2(points)}
    laws |= {f"main/Comm/MPI_{name}": points**0.5 for name in ("Allreduce", "Reduce", "Bcast")}
    made = experiment({path: law.tolist() for path, law in laws.items()})
    sent = 8 * made.columns["time"].exclusive
    sizes = MetricValues(Metric("bytes_sent", "B"), sent, sent.sum(axis=0))
    return fit(replace(made, columns={**made.columns, "bytes_sent": sizes}))


def _manifest(path: Path) -> None:
    from callpath_modeler.readers.discover import discover, write_manifest

    for name in ("a.csv", "b.csv"):
        (path.parent / name).write_text(table_files.CSV)
    runs = discover([path], _registry("tables"), findings=[])
    write_manifest(runs, path.parent)


@cache
def _stored() -> Path:
    """Return a stored experiment for commands."""
    home = Path(tempfile.mkdtemp(prefix="fuzz-store-"))
    for name, content in unzipped(seeds.stores()[0]).items():
        path = home / "e.cpm" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    (home / "a.csv").write_text(table_files.CSV + "main,16,1,1000,1\nmain,32,1,1000,1\n")
    return home / "e.cpm"


@contextmanager
def _unheard():
    """Discard the output of a command."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    before = {name: os.environ.pop(name) for name in list(os.environ) if "CPMODEL" in name}
    try:
        with redirect_stdout(out), redirect_stderr(err):
            yield
    finally:
        os.environ.update(before)
    err.flush()
    said = err.buffer.getvalue().decode()
    # Characters below the blank control a screen.
    assert not [sign for sign in said if ord(sign) < 32 and sign not in "\n\r\t"], said[:200]


def _command(*words: str) -> None:
    from callpath_modeler.cli.group import cpmodel

    try:
        with _unheard():
            cpmodel.main(list(words), prog_name="cpmodel", standalone_mode=False)
    except click.ClickException as error:
        raise UsageError(" ".join(error.format_message().split()), hint="--help") from error
    except click.exceptions.Exit:
        return


def _configuration(path: Path) -> None:
    _command("--config", str(path), "rank", str(_stored()))


_OPTIONS = ("target", "at", "where", "metric", "select", "exponents", "logs", "exponential",
            "confidence", "ignore", "hide", "columns", "by", "name", "param", "unit")  # fmt: skip
_OF_READING = _OPTIONS[-3:]


def _options(path: Path) -> None:
    content = path.read_bytes()
    if not content:
        raise UsageError("no option", hint="e.g. --target")
    option = _OPTIONS[content[0] % len(_OPTIONS)]
    text = os.fsdecode(content[1:]).replace("\0", "")
    source = _stored()
    _command(
        "rank",
        "-f",
        "csv",
        str(source.with_name("a.csv") if option in _OF_READING else source),
        *("--target=64", f"--{option}={text}")[option in {"target", "at"} :],
    )


def _of_options() -> list[bytes]:
    texts = {"target": "4096", "at": "p=4096", "where": "p>=4,p<=32", "metric": "time",
             "select": "main/**", "exponents": "0,1/2,1,2", "logs": "0,1", "exponential": "1/2",
             "confidence": "0.9", "ignore": "main/f", "hide": "main/f",
             "columns": "callpath,growth", "by": "growth", "param": "p=profile",
             "unit": "visits=s"}  # fmt: skip
    return [bytes([k]) + texts[o].encode() for k, o in enumerate(_OPTIONS) if o in texts]


def _guidelines(path: Path) -> None:
    """Check guidelines of a table, or of the output of a benchmark in every way."""
    from cpmodel_guidelines.suites.files import benchmark_files, read_campaign

    told = ("guidelines", str(path), "--processes", "4", "-f", "json")
    files = benchmark_files([str(path)], 4)
    if files is None:
        _command(*told, "--target", "4096")
        return
    read_campaign(files, strict=True)
    for form in ("json", "openmpi", "openmpi6"):
        try:
            _command("guidelines", "tune", str(path), "--processes", "4", "-f", form)
        except (DataError, UsageError) as error:
            check_refusal(error, path)
    # A single number of processes allows no target, and means allow no number of repetitions.
    ways = ("--compat", "pgmpi"), ("--nrep", "rse=0.1,cov_median=0.1/3"), ("--target", "4096"), ()
    for words in ways:
        try:
            _command(*told, *words)
        except (DataError, UsageError) as error:
            check_refusal(error, path)


def _told(path: Path) -> None:
    """Tell the communication of a trace or specification in each format; some cannot tell it."""
    from cpmodel_commspec.generators.interface import installed, load

    programs = [name for name in installed() if load(name).is_program]
    for name in installed().keys() - set(programs):
        _command("trace", "spec", str(path), "-f", name)
    with tempfile.TemporaryDirectory() as folder:
        for name in programs:
            words = ("-f", name, "-o", str(Path(folder) / name))
            try:
                _command("trace", "spec", str(path), *words)
            except DataError as error:
                check_refusal(error, path)


@cache
def _communicating() -> Path:
    """Return a trace that specifications are compared with."""
    home = Path(tempfile.mkdtemp(prefix="fuzz-trace-"))
    placed = Directory("traces.otf2").place(seeds.communicating(), home)
    assert placed
    return placed


def _specification(path: Path) -> None:
    _command("trace", "check", str(path), str(_communicating()))


def _replayed(path: Path) -> None:
    _command("trace", "replay", str(path))


@cache
def _tree() -> CallTree:
    names = ["main", "int ns::solve<double>(A<B> const&)", "MPI_Allreduce", "a*b{c,d}", "x/y"]
    return CallTree.from_parents([ROOT, 0, 1, 0, 3], range(5), [Region(name) for name in names])


def _patterns(path: Path) -> None:
    from callpath_modeler.profile.pattern import Patterns, find_one

    text = os.fsdecode(path.read_bytes())
    patterns = Patterns.of(_tree())
    patterns.rows(text)
    patterns.nearest(text)
    find_one(_tree(), text)


def _expressions(path: Path) -> None:
    """Read a text in every small language; at least one of them must accept a seed."""
    from callpath_modeler.analysis.difference import RegressionGate
    from callpath_modeler.modeling import parse_growth
    from callpath_modeler.modeling.terms import as_exponent
    from callpath_modeler.profile.metric_formulas import parse_definitions
    from callpath_modeler.readers.run_cases import parse_conditions
    from callpath_modeler.support.expression import ExpressionError, parse_comparison
    from callpath_modeler.units import parse_quantity
    from cpmodel_guidelines.rules import parse as parse_guideline

    text = os.fsdecode(path.read_bytes())
    known = 0
    languages = (parse_growth, parse_comparison, parse_guideline, parse_conditions, parse_quantity,
                 RegressionGate.parse, as_exponent, parse_definitions)  # fmt: skip
    for language in languages:
        # Other modules report errors for texts that are not quantities.
        fault = ValueError if language is parse_quantity else (ExpressionError, UsageError)
        try:
            found = language([text] if language is parse_definitions else text)
        except fault:
            continue
        known += 1
        if language is parse_growth:
            growth = found.growth
            assert parse_growth(growth.text()).growth == growth, (text, growth.text())
        if language is parse_definitions:
            assert parse_definitions([found[0].text]) == found, (text, found[0].text)
    if not known:
        raise UsageError("no expression", hint="an expression")


def _names(path: Path) -> None:
    """Read the text as the name of a run, a function, a metric and a call path."""
    from callpath_modeler.profile.pattern import short_name
    from callpath_modeler.readers.discover import natural_order
    from callpath_modeler.readers.paths import read_title, split_paths
    from callpath_modeler.readers.tokens import tokens_in
    from cpmodel_hpctoolkit.names import function_region

    text = os.fsdecode(path.read_bytes()).replace("\0", "")
    for take_apart in (tokens_in, short_name, natural_order, read_title, function_region):
        take_apart(text)
    split_paths([text, f"{text}/f"])


def _texts(*texts: str) -> Callable[[], list[bytes]]:
    return lambda: [text.encode() for text in texts]


_TARGETS = (
    Target("cubex", Cubex("profile.cubex"), _reader("scorep"), seeds.cubex, 1 << 17),
    Target("cube-3", Single("profile.cube"), _reader("scorep"), seeds.cube3),
    Target("cube-3-packed", Gzipped("profile.cube.gz"), _reader("scorep"),
           seeds.gzipped(seeds.cube3)),
    Target("hpctoolkit-4", Directory("d", is_folder=True),
           _reader("hpctoolkit", "hpctoolkit-loops"), seeds.hpctoolkit4),
    Target("hpctoolkit-2", Directory("d", is_folder=True),
           _reader("hpctoolkit", "hpctoolkit-loops"), seeds.hpctoolkit2),
    Target("caliper", Single("a.cali"), _reader("caliper"), seeds.caliper),
    Target("caliper-json", Single("a.json"), _reader("caliper"), seeds.caliper_json),
    Target("nsight", Single("a.sqlite"), _reader("nsight"), seeds.nsight, 1 << 17),
    Target("nsys-stats", Single("a_cuda_api_sum.csv"), _reader("nsys-stats"), seeds.nsys_stats),
    Target("rocprofv3", Directory("run", is_folder=True), _reader("rocprofv3"), seeds.rocprof),
    Target("rocpd", Single("a_results.db"), _reader("rocpd"), seeds.rocpd, 1 << 17),
    Target("extra-prof", Single("a.extra-prof.msgpack"), _reader("extra-prof"), seeds.extra_prof),
    Target("otf2", Directory("traces.otf2"), _reader("otf2"), seeds.traces),
    Target("trace-spec", Directory("traces.otf2"), _told, seeds.communication_traces),
    Target("trace-spec-json", Counted("spec.json"), _told, seeds.specifications),
    Target("trace-check", Counted("spec.json"), _specification, seeds.specifications),
    Target("trace-replay", Counted("spec.json"), _replayed, seeds.specifications),
    Target("tables-csv", Single("a.csv"), _reader("tables"), seeds.csv),
    Target("tables-text", Single("a.dat"), _reader("tables"), seeds.text_tables),
    Target("tables-markdown", Single("a.md"), _reader("tables"), seeds.markdown),
    Target("tables-csv-packed", Gzipped("a.csv.gz"), _reader("tables"), seeds.gzipped(seeds.csv)),
    Target("tables-json", Single("a.json"), _reader("tables"), seeds.json_rows),
    Target("tables-json-lines", Single("a.jsonl"), _reader("tables"), seeds.json_lines),
    Target("tables-parquet", Single("a.parquet"), _reader("tables"), seeds.parquet),
    Target("extrap-text", Single("a.txt"), _reader("extra-p"), seeds.extrap_text),
    Target("extrap-json", Single("a.json"), _reader("extra-p"), seeds.extrap_json),
    Target("extrap-experiment", Zipped("a.extra-p"), _reader("extra-p"), seeds.extrap_experiment),
    Target("folded", Single("a.folded"), _reader("folded"), seeds.folded),
    Target("jube", Single("result.dat"), _reader("workflows"), seeds.jube),
    Target("reframe-log", Single("a.log"), _reader("workflows"), seeds.reframe_log),
    Target("reframe-report", Single("a.json"), _reader("workflows"), seeds.reframe_report),
    Target("ramble-json", Single("a.json"), _reader("workflows"), seeds.ramble_json),
    Target("ramble-text", Single("a.txt"), _reader("workflows"), seeds.ramble_text),
    Target("logs", Single("a.log"), _reader("logs"), seeds.logs),
    Target("logs-json", Single("a.json"), _reader("logs"), seeds.json_logs),
    Target("profilers-json", Single("a.json"), _reader("profilers"),
           partial(seeds.profilers, ".json")),
    Target("profilers-text", Single("a.perf"), _reader("profilers"),
           partial(seeds.profilers, ".perf", ".4711")),
    Target("cprofile", Single("a.prof"), _reader("profilers"), partial(seeds.profilers, ".prof")),
    Target("pprof", Gzipped("a.pb.gz"), _reader("profilers"), partial(seeds.profilers, ".pb.gz")),
    Target("thicket", Single("a.json"), _reader("workflows"), seeds.thicket),
    Target("guidelines", Single("a.csv"), _guidelines, seeds.benchmarks, 1 << 14),
    Target("hatchet", Single("a.json"), _reader("hatchet"), seeds.hatchet),
    Target("tau", Directory("run.p2", is_folder=True), _reader("tau"), seeds.tau),
    Target("tau-packed", Gzipped("a.ppk"), _reader("tau"), seeds.tau_packed),
    Target("kineto", Single("a.json"), _reader("kineto"), seeds.kineto),
    Target("kineto-packed", Gzipped("a.json.gz"), _reader("kineto"), seeds.kineto),
    Target("kineto-ranks", Directory("run.p2", is_folder=True), _reader("kineto"),
           seeds.kineto_ranks),
    Target("store", Store("e.cpm", is_folder=True), _store, seeds.stores),
    Target("shard", Checked("part.cpm"), _shard, seeds.shards, 1 << 14),
    Target("history", History("h.db"), _history, seeds.histories, 1 << 17),
    Target("manifest", Single("runs.toml"), _manifest, _texts(seeds.MANIFEST), 1 << 13),
    Target("expectations", Single("e.toml"), _expectations, _texts(seeds.EXPECTATIONS), 1 << 13),
    Target("configuration", Single("cpmodel.toml"), _configuration, _texts(seeds.CONFIGURATION),
           1 << 13),
    Target("options", Single("option"), _options, _of_options, 1 << 13),
    Target("patterns", Single("pattern"), _patterns, _texts(
        "main", "main/**/MPI_*", "ns::solve", "m*n", "**/{MPI_Allreduce,x}", "x\\/y",
        "main/~^(ns::)?s[a-z]+|x$", r"~(?i)\bMPI_(\w+){1,3}[^\d]"), 1 << 13),
    Target("expressions", Single("text"), _expressions, _texts(
        "O(p^1.5 log p)", "p^(2/3) log2(p)^2", "k^3 2^(k/2)", "sqrt(p)", "p / log p",
        "{**/MPI_Allreduce} <= {**/MPI_Reduce} + 2 * max(1, x)", "bytes * 48 <= 24 GB",
        "Allgather <= Gather + Bcast(p*m)", "p>=64,n=30", "2.5 ms", "worse > 5 %", "1/3",
        "`L2 misses` = (PAPI_L2_TCM - 2.5e3 * min(a, b)) / 'visits'"), 1 << 13),
    Target("names", Single("name"), _names, _texts(
        "app.p64.n30.r1", "int ns::A<int>::f(B<C> const&) [clone .isra.3]#2", "time (inc) [ms]",
        "main->solve/f", "lulesh_p27-size30_rep2", "poll [libc-2.28.so]"), 1 << 13),
)  # fmt: skip

TARGETS = {target.name: target for target in _TARGETS}
"""All targets, by name."""
