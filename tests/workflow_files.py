"""Small files in the formats of workflow tools, written by these tests.

The formats follow ReFrame 4.10, which was run for comparison, and the public sources of JUBE 2.7
and Ramble, because neither can be installed from PyPI. Frames follow the output of Thicket 2026.1.
"""

from __future__ import annotations

import json

SCALES = (1, 2, 4, 8, 16)
TRIAD = "triad_bw"


def solve_time(p):
    """Return the seconds of the program: O(p)."""
    return 2 + 0.5 * p


def pretty(name, titles, rows, *, old=False):
    """Return a table as JUBE prints it for people; `old` = JUBE 2.6 or earlier."""
    table = [titles, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(titles))]
    lines = [" | ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
             for row in table]  # fmt: skip
    rule = ("-+-" if old else "-|-").join("-" * width for width in widths)
    lines.insert(1, rule)
    if not old:
        lines = [f"|-{line}-|" if line == rule else f"| {line} |" for line in lines]
    return "\n".join([f"{name}:", *lines, ""])


def aligned(titles, rows, separator=","):
    """Return a table as JUBE aligns it: without a rule, with a separator between cells."""
    table = [titles, *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[k]) for row in table) for k in range(len(titles))]
    lines = (separator.join(cell.rjust(w) for cell, w in zip(row, widths, strict=True))
             for row in table)  # fmt: skip
    return "\n".join(lines) + "\n"


LOG_HEADER = (
    "result|job_completion_time|descr|env_vars|environ|job_completion_time_unix|job_exitcode|"
    "job_nodelist|jobid|modules|n|name|num_cpus_per_task|num_gpus_per_node|num_tasks|"
    "num_tasks_per_node|partition|triad_bw_value|triad_bw_unit|triad_bw_ref|triad_bw_lower_thres|"
    "triad_bw_upper_thres|solve_time_value|solve_time_unit|solve_time_ref|"
    "solve_time_lower_thres|solve_time_upper_thres|short_name|system|unique_name"
)


def log_line(p, k, *, result="pass", bandwidth=None, time=None):
    """Return the line of the `k`-th run in a performance log of ReFrame."""
    bandwidth = 1000.0 * p if bandwidth is None else bandwidth
    time = solve_time(p) if time is None else time
    fields = (
        *(result, f"2026-11-25T15:30:{k % 60:02}", "", "{}", "builtin", 1795620616.6 + k, 0, "vm"),
        *(8361 + k, "", p, f"StreamTest %n={p}", "null", "null", p, "null", "default"),
        *(bandwidth, "MB/s", 0, "None", "None", time, "s", 0, "None", "None"),
        *(f"StreamTest_{p:08x}", "mysys", f"StreamTest_{p}"),
    )
    return "|".join(map(str, fields))


def perflog(lines):
    """Return a performance log of ReFrame."""
    return "\n".join([LOG_HEADER, *lines]) + "\n"


def case_of(p, *, name="StreamTest", result="pass", time=None):
    """Return a test case of a run report of ReFrame 4."""
    values = {
        "mysys:default:triad_bw": [1000.0 * p, 0, None, None, "MB/s", result],
        "mysys:default:solve_time": [time or solve_time(p), 0, None, None, "s", result],
    }
    return {
        "environ": "builtin", "partition": "default", "system": "mysys", "result": result,
        "jobid": str(8361 + p), "name": f"{name} %n={p}", "num_tasks": p, "n": p, "tags": [],
        "num_cpus_per_task": None, "time_total": 0.68, "job_exitcode": 0, "perfvalues": values,
    }  # fmt: skip


def report(cases):
    """Return a run report of ReFrame 4."""
    session = {"data_version": "4.2", "version": "4.10.4", "num_cases": len(cases)}
    runs = [{"num_cases": len(cases), "run_index": 0, "testcases": cases}]
    return json.dumps({"session_info": session, "runs": runs, "restored_cases": []})


def fom(name, value, units, origin_type="application"):
    """Return a figure of merit of Ramble."""
    kind = {"name": "MEASURE", "better_direction": "INDETERMINATE"}
    return {"name": name, "value": value, "units": units, "origin": "lulesh",
            "origin_type": origin_type, "fom_type": kind}  # fmt: skip


def experiment(p, *, repeat=0, status="SUCCESS", figures=None, contexts=(), variables=None):
    """Return an experiment of Ramble's results."""
    name = f"lulesh.standard.scaling_{p}" + (f".{repeat}" if repeat else "")
    figures = figures if figures is not None else [
        fom("Time", f"{solve_time(p)}", "s"),
        fom("FOM", str(100 * p), "z/s"),
        fom("Version", "2.0", ""),
        fom("Compiler", "gcc", ""),
    ]  # fmt: skip
    told = {"n_ranks": str(p), "n_nodes": "1", "n_threads": "2", "processes_per_node": str(p),
            "size": "30", "repeat_index": str(repeat), "experiment_index": str(p),
            "experiment_run_dir": "/w/x", "mpi_command": "srun", "batch_time": "10"}  # fmt: skip
    null = {"name": "null", "display_name": "null", "foms": figures}
    return {
        "RAMBLE_STATUS": status, "name": name, "experiment_chain": [], "application_name": "lulesh",
        "workload_name": "standard", "n_nodes": 1, "processes_per_node": p, "n_ranks": p,
        "n_threads": 2, "N_REPEATS": 0, "RAMBLE_VARIABLES": {**told, **(variables or {})},
        "RAMBLE_RAW_VARIABLES": {}, "CONTEXTS": [null, *contexts],
    }  # fmt: skip


def results(experiments):
    """Return the results of Ramble as JSON."""
    return json.dumps({"workspace_hash": "x1", "workspace_name": "w", "experiments": experiments})


def results_text(experiments):
    """Return the results of Ramble as text for people."""
    lines = ["From Workspace: w (hash: x1)"]
    for each in experiments:
        lines += [f"Experiment {each['name']} figures of merit:",
                  f"  Status = {each['RAMBLE_STATUS']}"]  # fmt: skip
        for context in each["CONTEXTS"]:
            shown = context["display_name"].replace("null", "default (null) context")
            lines.append(f"  {shown} figures of merit:")
            lines += [f"    {f['name']} = {f['value']} {f['units']}".rstrip()
                      for f in context["foms"]]  # fmt: skip
        lines += ["  Success criteria summary:", "    status = True"]
    return "\n".join(lines) + "\n"


def thicket(scales=SCALES, *, inclusive=("time (inc)",), files=True, names=("main", "solve")):
    """Return the JSON of Thicket: main calls solve, and a second function of that name."""
    graph = {
        "0": {"data": {"name": names[0], "type": "function"}, "children": [1], "parents": []},
        "1": {"data": {"name": names[1], "type": "function"}, "children": [2], "parents": [0]},
        "2": {"data": {"name": names[1], "type": "function"}, "children": [], "parents": [1]},
    }
    frame, metadata, mapping = [], [], {}
    for p in scales:
        profile = 7813835555483 + 977 * p
        inner, outer = float(p), solve_time(p)
        for node, time in enumerate((1 + inner + outer, inner + outer, inner)):
            frame.append({"node": node, "profile": profile, "nid": float(node),
                          "spot.channel": ["regionprofile"],
                          inclusive[0] if inclusive else "time": time, "Min time/rank": time / 2,
                          "name": names[min(node, 1)]})  # fmt: skip
        metadata.append({"profile": profile, "mpi.world.size": p, "jobsize": p, "user": "me",
                         "problem_size": 30, "elapsed_time": 1.5, "libraries": ["a", "b"],
                         "launchdate": 1616614379 + p, "cluster": "opal"})  # fmt: skip
        mapping[str(profile)] = f"/runs/app.p{p}.cali"
    return json.dumps({
        "graph": [graph], "dataframe_indices": ["node", "profile"], "dataframe": frame,
        "metadata": metadata, "stats": [], "inclusive_metrics": [*inclusive],
        "exclusive_metrics": [], "profile": [], "profile_idx_name": "profile",
        "profile_mapping": mapping if files else {},
    })  # fmt: skip
