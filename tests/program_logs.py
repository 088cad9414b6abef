"""Logs as programs print them, for any number of processes and any times.

The layouts of LAMMPS, GROMACS, OpenFOAM, HPL and hyperfine are those of runs of ours, the others
those of the programs' documentation.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A program and its log.

    Attributes
    ----------
    file : name of the log
    write : times of the parts at a number of processes -> the log. Part "" is the whole program
    parts : names of the parts in the log
    paths : their call paths
    unit : smallest time that the log shows, in seconds
    """

    file: str
    write: Callable[[int, dict[str, float]], str]
    parts: tuple[str, ...]
    paths: tuple[str, ...]
    unit: float

    def times(self, p: int) -> dict[str, float]:
        """Return times of the parts, and of the whole as their sum, at a number of processes."""
        own = {part: 40.0 * (k + 1) / p + 3.0 + 2.0 * k for k, part in enumerate(self.parts)}
        return {"": sum(own.values()), **own} if "" not in own else own

    def log(self, p: int) -> str:
        """Return the log of a run."""
        return self.write(p, self.times(p))


def lammps(p: int, times: dict[str, float]) -> str:
    """Return a log of LAMMPS."""
    rows = "".join(
        f"{name:<8}| {0.9 * time:<11.5g}| {time:<11.7g}| {1.1 * time:<11.5g}|   6.0 | 26.86\n"
        for name, time in times.items()
        if name not in {"", "Other"}
    )
    return f"""LAMMPS (7 Jan 2022)
  using 1 OpenMP thread(s) per MPI task
units lj
Created orthogonal box = (0 0 0) to (16 16 16)
Step Temp E_pair E_mol TotEng Press
       0            3   -6.7733681            0   -2.2744931   -3.7033504
     250    1.6645597   -4.7774327            0   -2.2812174    5.7526089
Loop time of {times[""]:.6f} on {p} procs for 250 steps with 4000 atoms

Performance: 52329.144 tau/day, 121.132 timesteps/s
99.4% CPU use with {p} MPI tasks x 1 OpenMP threads

MPI task timing breakdown:
Section |  min time  |  avg time  |  max time  |%varavg| %total
---------------------------------------------------------------
{rows}Other   |            | {times["Other"]:<11.7g}|            |       |  1.08

Nlocal:        2000.00 ave        2005 max        1995 min
Histogram: 1 0 0 0 0 0 0 0 0 1
Total wall time: 0:00:02
"""


def gromacs(p: int, times: dict[str, float]) -> str:
    """Return a log of GROMACS."""
    mesh = times["PME 3D-FFT"] + times["PME spread"]

    def row(name: str, time: float) -> str:
        return f" {name:<21}{p:>3}    1        201  {time:>10.3f}  {3 * time:>10.3f}  64.8\n"

    return f"""                 :-) GROMACS - gmx mdrun, 2022.5 (-:

   nsteps                         = 200
Using {p} MPI processes
Using 1 OpenMP thread per MPI process
There are: 2652 Atoms

     R E A L   C Y C L E   A N D   T I M E   A C C O U N T I N G

On {p} MPI ranks

 Computing:          Num   Num      Call    Wall time         Giga-Cycles
                     Ranks Threads  Count      (s)         total sum    %
-----------------------------------------------------------------------------
{row("Force", times["Force"])}{row("Wait + Comm. F", times["Wait + Comm. F"])}\
{row("PME mesh", mesh)}{row("NB X/F buffer ops.", 0.0)}\
 Rest                                       {times["Rest"]:>9.3f}          0.005   0.3
-----------------------------------------------------------------------------
 Total                                      {times[""]:>9.3f}          1.539 100.0
-----------------------------------------------------------------------------
 Breakdown of PME mesh computation
-----------------------------------------------------------------------------
{row("PME spread", times["PME spread"])}{row("PME 3D-FFT", times["PME 3D-FFT"])}\
-----------------------------------------------------------------------------

               Core t (s)   Wall t (s)        (%)
       Time:        0.593        0.296      200.0
                 (ns/day)    (hour/ns)
Performance:      117.158        0.205
Finished mdrun on rank 0 Sun Nov 29 13:57:46 2026
"""


def openfoam(p: int, times: dict[str, float]) -> str:
    """Return a log of OpenFOAM."""
    return f"""Build  : OPENFOAM=1912 patch=200626
Exec   : icoFoam -parallel
nProcs : {p}

Time = 0.001
DICPCG:  Solving for p, Initial residual = 1, Final residual = 8e-07, No Iterations 35
ExecutionTime = {times[""] / 2:.2f} s  ClockTime = 1 s

Time = 0.002
ExecutionTime = {times[""]:.2f} s  ClockTime = 2 s

End

Finalising parallel run
"""


def npb(p: int, times: dict[str, float]) -> str:
    """Return the output of a benchmark of NPB."""
    return f"""

 NAS Parallel Benchmarks 3.4 -- CG Benchmark

 Size:     150000  (class C)
 Iterations:             75
 Total number of processes:      {p}

 CG Benchmark Completed.
 Class           =                        C
 Size            =                   150000
 Iterations      =                       75
 Time in seconds =          {times[""]:>15.2f}
 Total processes =          {p:>15}
 Active processes=          {p:>15}
 Mop/s total     =                  3214.52
 Operation type  =           floating point
 Verification    =               SUCCESSFUL
 Version         =                    3.4.2
"""


def hpl(p: int, times: dict[str, float]) -> str:
    """Return HPL.out of one problem on p processes."""
    return f"""HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018
N      : The order of the coefficient matrix A.
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR11C2R4        8000    80     1 {p:>5} {times[""]:>18.2f}              4.217e+00
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0052710 ...... PASSED
"""


def hpcg(p: int, times: dict[str, float]) -> str:
    """Return a report of HPCG, whose times are those of 100 iterations."""
    rows = "".join(
        f"Benchmark Time Summary::{name or 'Total'}={100 * time:.4f}\n"
        for name, time in sorted(times.items(), reverse=True)
    )
    return f"""HPCG-Benchmark
version=3.1
Machine Summary=
Machine Summary::Distributed Processes={p}
Machine Summary::Threads per processes=1
Global Problem Dimensions=
Global Problem Dimensions::Global nx=104
Iteration Count Information::Total number of optimized iterations=100
Benchmark Time Summary=
Benchmark Time Summary::Optimization phase=0
{rows}Floating Point Operations Summary::Total=5.1e+09
Final Summary::HPCG result is VALID with a GFLOP/s rating of=1.2
"""


def stream(p: int, times: dict[str, float]) -> str:
    """Return the output of STREAM with p threads."""
    rows = "".join(
        f"{name + ':':<12} {1e4 / time:>11.1f} {time:>13.6f} {time:>13.6f} {time:>13.6f}\n"
        for name, time in times.items()
        if name
    )
    return f"""-------------------------------------------------------------
STREAM version $Revision: 5.10 $
-------------------------------------------------------------
Array size = 10000000 (elements), Offset = 0 (elements)
Number of Threads requested = {p}
Number of Threads counted = {p}
Function    Best Rate MB/s  Avg time     Min time     Max time
{rows}-------------------------------------------------------------
Solution Validates: avg error less than 1.000000e-13 on all three arrays
"""


def mpip(p: int, times: dict[str, float]) -> str:
    """Return a report of mpiP, which adds up the processes."""
    tasks = "".join(f"@ MPI Task Assignment      : {rank} node0\n" for rank in range(p))
    rows = "".join(
        f"{name.split()[0].removeprefix('MPI_'):<20} {k:>4} {1e3 * p * time:>10.1f} "
        f"{20.0:>7.2f} {50.0:>7.2f} {10 * p:>8} {0.0:>6.2f}\n"
        for k, (name, time) in enumerate(times.items())
        if name
    )
    whole = 1.5 * times[""]
    return f"""@ mpiP
@ Command : ./solver -n 8
@ Version                  : 3.5.0
{tasks}
---------------------------------------------------------------------------
@--- MPI Time (seconds) ---------------------------------------------------
---------------------------------------------------------------------------
Task    AppTime    MPITime     MPI%
   0    {whole:.4g}      {times[""]:.4g}    66.7
   *    {p * whole:.6g}      {p * times[""]:.6g}    66.7
---------------------------------------------------------------------------
@--- Aggregate Time (top twenty, descending, milliseconds) ----------------
---------------------------------------------------------------------------
Call                 Site       Time    App%    MPI%     Count    COV
{rows}---------------------------------------------------------------------------
@--- Aggregate Sent Message Size (top twenty, descending, bytes) ----------
---------------------------------------------------------------------------
Call                 Site      Count      Total       Avrg  Sent%
Send                    1         10       1000        100  100.0
"""


def caliper(_p: int, times: dict[str, float]) -> str:
    """Return the report `runtime-report` of Caliper, with values per process."""

    def row(name: str, time: float) -> str:
        return f"{name:<16} {0.9 * time:>13.6f} {1.1 * time:>13.6f} {time:>13.6f} {20.0:>9.4f}\n"

    return (
        "Path             Min time/rank Max time/rank Avg time/rank Time %\n"
        f"{row('main', times['main'])}{row('  solve', times['solve'])}"
        f"{row('    exchange', times['exchange'])}{row('  write output', times['write output'])}"
    )


def sacct(p: int, times: dict[str, float]) -> str:
    """Return what sacct prints of a job with one step, and of a job that failed."""
    whole = int(times[""])
    elapsed = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
    return f"""JobID|JobName|Partition|NNodes|NTasks|AllocCPUS|Elapsed|State|ExitCode
{p}1|solver|batch|1||{p}|{elapsed}|COMPLETED|0:0
{p}1.batch|batch||1|1|{p}|{elapsed}|COMPLETED|0:0
{p}1.extern|extern||1|1|{p}|{elapsed}|COMPLETED|0:0
{p}1.0|solver||1|{p}|{p}|{elapsed}|COMPLETED|0:0
{p}2|solver|batch|1||{p}|00:00:01|FAILED|1:0
"""


def hyperfine(p: int, times: dict[str, float]) -> str:
    """Return a result of hyperfine."""
    three = [times[""], 1.001 * times[""], 0.999 * times[""]]
    one = {
        "command": f"mpirun -np {p} ./solver -n 1000",
        "mean": times[""],
        "times": three,
        "exit_codes": [0, 0, 0],
    }
    return json.dumps({"results": [one]}, indent=2)


def google_benchmark(p: int, times: dict[str, float]) -> str:
    """Return a result of Google Benchmark for p threads."""
    return json.dumps(
        {
            "context": {"date": "2026-11-29", "num_cpus": 2, "library_build_type": "release"},
            "benchmarks": [
                {
                    "name": f"{name}/4096/threads:{p}/real_time",
                    "run_type": "iteration",
                    "iterations": 700,
                    "real_time": 1e3 * time,
                    "cpu_time": 1e3 * time,
                    "time_unit": "ms",
                    "threads": p,
                }
                for name, time in times.items()
                if name
            ],
        }
    )


def talp(p: int, times: dict[str, float]) -> str:
    """Return a report of TALP."""
    regions = {
        name or "Global": {"numMpiRanks": p, "elapsedTime": round(1e9 * time), "averageIPC": 1.2}
        for name, time in times.items()
        if name != "rest"
    }
    return json.dumps(
        {
            "dlbVersion": "3.5.0",
            "resources": {"numCpus": p, "numNodes": 1, "numMpiRanks": p},
            "Application": regions,
        },
        indent=2,
    )


def kokkos(_p: int, times: dict[str, float]) -> str:
    """Return a result of the kernel timer of Kokkos Tools."""
    kernels = [
        {"kernel-name": name, "region": "", "call-count": 10, "total-time": time,
         "time-per-call": time / 10, "kernel-type": "PARALLEL-FOR"}
        for name, time in times.items()
        if name not in {"", "rest"}
    ]  # fmt: skip
    data = {
        "mpi-rank": "0",
        "total-app-time": times[""],
        "total-kernel-times": times[""] - times["rest"],
        "kernel-perf-info": kernels,
    }
    return json.dumps({"kokkos-kernel-data": data})


def likwid(threads: int, times: dict[str, float]) -> str:
    """Return CSV of likwid-perfctr for the regions of a program, after its source in Lua.

    Each region takes its time on the last thread, and less on the others.
    """
    names = [f"HWThread {number}" for number in range(threads)]
    width = max(len(names) + 2, 5)

    def line(*cells: object) -> str:
        return ",".join(map(str, cells)) + "," * (width - len(cells)) + "\n"

    def statistics(kind: str, region: str, group: str, *rows: Sequence[object]) -> str:
        head = line("TABLE", f"Region {region}", f"Group 1 {kind} STAT", group, len(rows))
        return head + "".join(line(*row) for row in rows)

    text = ""
    for region, time in times.items():
        if not region:
            continue
        own = [f"{0.75 * time if k + 1 < threads else time:.6f}" for k in range(threads)]
        text += line("STRUCT", "Info", 3)
        text += line("CPU name:", "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz")
        text += line("CPU type:", "Intel Cascadelake SP processor")
        text += line("CPU clock:", "2.494120 GHz")
        text += line("TABLE", f"Region {region}", "Group 1 Raw", "MEM_DP", 2)
        text += line("Region Info", *names)
        text += line("RDTSC Runtime [s]", *own)
        text += line("call count", *["10"] * threads)
        text += line("Event", "Counter", *names)
        text += line("INSTR_RETIRED_ANY", "FIXC0", *[str(1000 // threads)] * threads)
        text += line("CAS_COUNT_RD", "MBOX0C0", "500", *["0"] * (threads - 1))
        if threads > 1:
            row = ("INSTR_RETIRED_ANY STAT", "FIXC0", 1000, 1000 // threads, 1000 // threads)
            text += statistics("Raw", region, "MEM_DP",
                               ("Event", "Counter", "Sum", "Min", "Max", "Avg"), row)  # fmt: skip
        text += line("TABLE", f"Region {region}", "Group 1 Metric", "MEM_DP", 4)
        text += line("Metric", *names)
        text += line("Runtime (RDTSC) [s]", *own)
        text += line("CPI", *["0.71"] * threads)
        text += line("Memory bandwidth [MBytes/s]", *["12000.5"] * threads)
        text += line("Memory data volume [GBytes]", "1.5", *["0"] * (threads - 1))
        if threads > 1:
            row = ("Runtime (RDTSC) [s] STAT", 9.9, 0.1, time, 0.2)
            text += statistics("Metric", region, "MEM_DP",
                               ("Metric", "Sum", "Min", "Max", "Avg"), row)  # fmt: skip
    return text


_HPCG = ("DDOT", "MG", "SpMV", "WAXPBY")
_STREAM = ("Copy", "Scale", "Add", "Triad")
PROGRAMS = {
    "LAMMPS": Program("log.lammps", lammps, ("Pair", "Neigh", "Comm", "Other"),
                      ("LAMMPS/Pair", "LAMMPS/Neigh", "LAMMPS/Comm", "LAMMPS/Other"), 1e-5),
    "GROMACS": Program("md.log", gromacs,
                       ("Force", "Wait + Comm. F", "PME spread", "PME 3D-FFT", "Rest"),
                       ("GROMACS/Force", "GROMACS/Wait + Comm. F", "GROMACS/PME mesh/PME spread",
                        "GROMACS/PME mesh/PME 3D-FFT", "GROMACS/Rest"), 1e-3),
    "OpenFOAM": Program("log.icoFoam", openfoam, ("",), ("icoFoam",), 1e-2),
    "NPB": Program("cg.out", npb, ("",), ("CG",), 1e-2),
    "HPL": Program("HPL.out", hpl, ("",), ("HPL",), 1e-2),
    "HPCG": Program("HPCG-Benchmark_3.1.txt", hpcg, _HPCG,
                    tuple(f"HPCG/{name}" for name in _HPCG), 1e-5),
    "STREAM": Program("stream.txt", stream, _STREAM,
                      tuple(f"STREAM/{name}" for name in _STREAM), 1e-5),
    "mpiP": Program("solver.4.321.1.mpiP", mpip, ("MPI_Barrier (site 1)", "MPI_Send (site 2)"),
                    ("solver/MPI_Barrier (site 1)", "solver/MPI_Send (site 2)"), 1e-3),
    "Caliper": Program("report.txt", caliper, ("main", "solve", "exchange", "write output"),
                       ("main", "main/solve", "main/solve/exchange", "main/write output"), 1e-5),
    "TALP": Program("talp.json", talp, ("solve", "io", "rest"),
                    ("program/solve", "program/io", "program"), 1e-6),
    "Kokkos": Program("host-4711.json", kokkos, ("axpy", "spmv", "rest"),
                      ("application/axpy", "application/spmv", "application"), 1e-6),
    "LIKWID": Program("run.csv", likwid, ("triad", "halo"), ("triad", "halo"), 1e-6),
    "sacct": Program("jobs.txt", sacct, ("",), ("solver",), 1.0),
    "hyperfine": Program("times.json", hyperfine, ("",),
                         ("mpirun -np # .\\/solver -n 1000",), 1e-6),
    "Google Benchmark": Program("bench.json", google_benchmark, ("BM_sort",), ("BM_sort",), 1e-6),
}  # fmt: skip
