"""Performance logs and run reports of ReFrame."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from callpath_modeler.errors import InputError
from callpath_modeler.readers.base import RunSource
from cpmodel_tables.grid import refuse_many
from cpmodel_tables.results import NODES, PROCESSES, THREADS, Results, counts_of
from cpmodel_tables.text import COPY_IT_AGAIN, json_of, opened_lines, whole_text

_CREATOR = "ReFrame"
_REPORT = re.compile(r'\s*\{\s*"(session_info|runs|restored_cases)"\s*:')
_OLD = re.compile(r"[^|\n]*\|\s*reframe \d[^|\n]*\|")
_COUNTS = {
    "num_tasks": PROCESSES,
    "num_cpus_per_task": THREADS,
    "num_nodes": NODES,
    "job_num_nodes": NODES,
}
_STANDARD = frozenset(
    {"asctime", "build_jobid", "build_locally", "build_time_limit", "descr", "display_name",
     "env_vars", "exclusive_access", "executable", "executable_opts", "extra_resources",
     "fail_phase", "fail_reason", "filename", "fixture", "hashcode", "hostname", "info",
     "job_completion_time", "job_completion_time_unix", "job_exitcode", "job_nodelist",
     "job_submit_time", "jobid", "keep_files", "levelname", "local", "maintainers",
     "max_pending_time", "message", "modules", "name", "num_gpus_per_node", "num_tasks_per_core",
     "num_tasks_per_node", "num_tasks_per_socket", "osuser", "osgroup", "outputdir", "prefix",
     "result", "run_index", "scheduler", "session_uuid", "short_name", "sourcepath", "sourcesdir",
     "stagedir", "strict_check", "tags", "time_compile", "time_limit", "time_performance",
     "time_run", "time_sanity", "time_setup", "time_total", "unique_name", "use_multithreading",
     "uuid", "valid_prog_environs", "valid_systems", "variables"}
)  # fmt: skip
"""Fields that ReFrame writes for every test; other fields are parameters of the test."""
_METADATA = ("system", "partition", "environ", "version")
_FIGURE = re.compile(r"(.+)_(?:value|unit|ref|lower|upper|lower_thres|upper_thres|result)")
_OF_ONE = re.compile(r"perf_\w+|p(?:var|val|unit|ref|lower|upper)")
_ONE = (("pvar", "pval", "punit"), ("perf_var", "perf_value", "perf_unit"))
_PASSED = frozenset({"pass", "xpass", "ok", "passed", "success", ""})


def is_log(text: str) -> bool:
    """Return whether a text is a performance log with a header, by its first line."""
    titles = _titles(_first_line(text))
    return (
        len(titles) > 2
        and bool(_figures(titles))
        and ("result" in titles or bool({"num_tasks", "jobid", "job_completion_time"} & {*titles}))
    )


def is_old_log(text: str) -> bool:
    """Return whether a text is a performance log of ReFrame before 4.0, which has no header."""
    return bool(_OLD.match(text))


def is_report(text: str) -> bool:
    """Return whether JSON is a run report, by its beginning."""
    return bool(_REPORT.match(text)) and ('"testcases"' in text or '"data_version"' in text)


def read_log(path: Path) -> list[RunSource]:
    """Return the runs in a performance log, which has one line per run.

    Each variable has fields with its name, value and unit.

    Raises
    ------
    InputError
        If the number of fields in a line differs from the header.
    """
    results = Results(path, _CREATOR)
    titles: list[str] = []
    figures: list[tuple[str, str, str]] = []
    with opened_lines(path) as text:
        for number, line in enumerate(text, 1):
            if not line.strip():
                continue
            fields = [cell.strip() for cell in line.rstrip("\n").split("|")]
            if not titles:
                titles = _titles(line)
                refuse_many(path, len(titles))
                figures = _figures(titles)
                continue
            # A log format may end with the field separator.
            extra = len(fields) - len(titles)
            if extra < 0 or any(fields[len(titles) :]):
                raise InputError(
                    f"{path}: line {number}: {len(fields)} fields, but {len(titles)} titles",
                    hint="use one log format per file; ReFrame moves older lines to .h0, .h1, ...",
                )
            told = dict(zip(titles, fields, strict=False))
            _add(results, told, _of_line(told, figures), number)
    return results.runs()


def read_report(path: Path) -> list[RunSource]:
    """Return the runs in a run report.

    Raises
    ------
    InputError
        If there is no list of test cases.
    """
    document = json_of(path, whole_text(path))
    runs = document.get("runs") if isinstance(document, dict) else None
    results = Results(path, _CREATOR, place="test case")
    number = 0
    for run in runs if isinstance(runs, list) else [None]:
        cases = run.get("testcases") if isinstance(run, dict) else None
        if not isinstance(cases, list):
            raise InputError(f"{path}: a run has no test cases", hint=COPY_IT_AGAIN)
        for case in cases:
            number += 1
            if not isinstance(case, dict):
                raise InputError(f"{path}: test case {number} is not an object", hint=COPY_IT_AGAIN)
            inner = [case.get(key) for key in ("check_vars", "check_params")]
            told = {k: v for held in inner if isinstance(held, dict) for k, v in held.items()}
            _add(results, {**told, **case}, _of_case(case), number)
    return results.runs()


_Value = tuple[str, object, object]


def _add(
    results: Results, told: Mapping[str, object], values: Sequence[_Value], number: int
) -> None:
    results.listed += 1
    is_passed = str(told.get("result") or "").lower() in _PASSED
    if not is_passed or not any(_is_there(value) for _, value, _ in values):
        results.failed += 1
        return
    run: dict[str, object] = {"program": _program(told) or results.path.name.partition(".")[0]}
    run |= counts_of(told, _COUNTS)
    run |= {name: told[name] for name in _METADATA if _is_there(told.get(name))}
    for name, value in told.items():
        plain = name not in {*_STANDARD, *_COUNTS, *_METADATA} and not isinstance(value, bool)
        if plain and isinstance(value, str | int | float) and name not in run:
            run[name] = value
    for metric, value, unit in values:
        results.add(run, (), metric, value if _is_there(value) else None, unit, number)


def _program(told: Mapping[str, object]) -> str:
    """Return the name of a test without its parameters, as in ``StreamTest %n=16``, or ""."""
    for key in ("name", "display_name", "info", "unique_name"):
        words = str(told.get(key) or "").split()
        if words and words[0] not in {"None", "null"}:
            return words[0]
    return ""


def _is_there(value: object) -> bool:
    return value is not None and str(value).strip().lower() not in {"", "none", "null", "nan"}


def _first_line(text: str) -> str:
    return next((line for line in text.split("\n") if line.strip()), "")


def _titles(line: str) -> list[str]:
    titles = [title.strip().removeprefix("check_") for title in line.split("|")]
    while titles and not titles[-1]:
        titles.pop()
    return titles


def _figures(titles: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the titles of the name, value and unit of each variable; "" = none."""
    for name, value, unit in _ONE:
        if name in titles and value in titles:
            return [(name, value, unit)]
    return [
        ("", title, f"{title.removesuffix('_value')}_unit")
        for title in titles
        if title.endswith("_value") and len(title) > len("_value")
    ]


def _of_line(told: dict[str, str], figures: Sequence[tuple[str, str, str]]) -> list[_Value]:
    """Remove the values of a line from `told`, and return them."""
    values: list[_Value] = []
    for name, value, unit in figures:
        metric = told[name] if name else value.removesuffix("_value")
        values.append((metric, told[value], told.get(unit)))
    metrics = {metric for metric, _, _ in values}
    for title in [*told]:
        found = _FIGURE.fullmatch(title)
        if (found and found[1] in metrics) or _OF_ONE.fullmatch(title):
            del told[title]
    return values


def _of_case(case: Mapping[str, object]) -> list[_Value]:
    return list(_values_of(case.get("perfvalues"), case.get("perfvars")))


def _values_of(by_name: object, listed: object) -> Iterator[_Value]:
    """Yield the values of a test case; reports have two layouts of them."""
    for name, held in by_name.items() if isinstance(by_name, dict) else ():
        if isinstance(held, list) and held:
            unit = held[4] if len(held) > 4 else None
            yield str(name).rpartition(":")[2], held[0], unit
    for held in listed if isinstance(listed, list) else ():
        if isinstance(held, dict):
            yield str(held.get("name") or ""), held.get("value"), held.get("unit")
