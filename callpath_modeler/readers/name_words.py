"""Meanings of words in run names and table titles: processes, repetition, identifier, size."""

from __future__ import annotations

import re
from enum import StrEnum

from callpath_modeler.readers.titles import is_processes


class NameWord(StrEnum):
    """Meaning of the word next to a number."""

    PROCESSES = "processes"
    CORES = "cores"
    THREADS = "threads"
    NODES = "nodes"
    REPETITION = "repetition"
    IDENTIFIER = "identifier"
    SIZE = "size"
    OTHER = "other"
    NONE = "none"


_PROCESSES = frozenset(
    {"rank", "tasks", "task", "proc", "mpi", "pe", "pes", "mpiprocs", "mpiranks", "nmpi",
     "mpiprocesses", "numranks", "numtasks", "nprocesses", "processors", "nprocessors", "size mpi"}
)  # fmt: skip
_CORES = frozenset({"cores", "core", "ncores", "cpus", "cpu", "ncpus", "num cores", "n cores"})
_THREADS = frozenset(
    {"threads", "thread", "nthreads", "numthreads", "omp", "thr", "num threads", "n threads",
     "omp threads", "omp num threads", "threads per rank", "threads per process",
     "threads per proc", "threads per task", "cpus per task", "cores per task", "tpp", "tpr"}
)  # fmt: skip
_NODES = frozenset({"nodes", "nnodes", "numnodes", "num nodes", "n nodes"})
REPETITIONS = frozenset({"r", "rep", "reps", "run", "trial", "seed", "repetition", "repeat"})
"""Words for the number of a repetition."""
_IDENTIFIERS = frozenset(
    {"job", "jobid", "jid", "slurm", "slurmid", "pbs", "lsf", "id", "pid", "uid", "uuid", "guid",
     "hash", "sha", "commit", "rev", "revision",
     "host", "hostname", "node", "nid", "login", "date",
     "time", "day", "month", "year", "launchdate", "timestamp", "datetime", "stamp", "epoch",
     "profile",
     "profiles", "summary", "index", "idx", "key", "serial", "version", "pr", "issue", "build"}
)  # fmt: skip
_SIZES = frozenset(
    {"size", "sizes", "problemsize", "inputsize", "nx", "ny", "nz", "cells", "elements", "elems",
     "elem", "grid", "dim", "dims", "mesh", "particles", "atoms", "block", "blocks", "bytes",
     "message", "msg", "length", "len", "width", "height", "depth", "order", "degree", "density",
     "iter", "iters", "iterations", "steps", "timesteps", "level", "levels", "tile", "batch",
     "problem size", "input size", "edge", "volume", "points", "dof", "dofs", "rows", "cols"}
)  # fmt: skip
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def word_of(text: str) -> NameWord:
    """Return the meaning of a word, or of several words joined by spaces or signs.

    >>> [str(word_of(word)) for word in ("ntasks", "omp-threads", "JobId", "n", "solver", "")]
    ['processes', 'threads', 'identifier', 'size', 'other', 'none']
    """
    parts = [part.lower() for part in re.findall(r"[A-Za-zµ]+", _CAMEL.sub(" ", text))]
    if not parts:
        return NameWord.NONE
    plain = " ".join(parts)
    kinds = (
        (_THREADS, NameWord.THREADS), (_NODES, NameWord.NODES), (_CORES, NameWord.CORES),
        (REPETITIONS, NameWord.REPETITION), (_PROCESSES, NameWord.PROCESSES),
        (_IDENTIFIERS, NameWord.IDENTIFIER),        (_SIZES, NameWord.SIZE),
    )  # fmt: skip
    for words, kind in kinds:
        if plain in words:
            return kind
    if is_processes(plain):
        return NameWord.PROCESSES
    if len(plain) == 1:
        return NameWord.SIZE
    if (
        parts[-1] in _IDENTIFIERS - {"time", "node", "profile", "key"}
        or "".join(parts) in _IDENTIFIERS
    ):
        return NameWord.IDENTIFIER
    return NameWord.SIZE if "per" in parts or parts[-1] == "size" else NameWord.OTHER
