"""Small Caliper files as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

INT, UINT, STRING, DOUBLE = 1, 2, 3, 5
_AS_VALUE, _NESTED, _GLOBAL = 65, 268, 512
_SPECIAL = str.maketrans({sign: f"\\{sign}" for sign in "\\,="} | {"\n": "\\n"})


class Writer:
    """A writer of the lines of a `.cali` file."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._next = 12
        self._paths: dict[tuple[str, ...], int] = {(): -1}
        self._attributes: dict[str, int] = {}
        self._alias = self._meta("attribute.alias")
        self._unit = self._meta("attribute.unit")

    def node(self, attribute: int, data: object, parent: int = -1) -> int:
        """Write a node and return its number."""
        number, self._next = self._next, self._next + 1
        text = str(data).translate(_SPECIAL)
        line = f"__rec=node,id={number},attr={attribute},data={text}"
        self.lines.append(line if parent < 0 else f"{line},parent={parent}")
        return number

    def _meta(self, name: str) -> int:
        return self.node(8, name, self.node(10, 64, STRING))

    def attribute(
        self, name: str, kind: int, properties: int, *, unit: str = "", alias: str = ""
    ) -> int:
        """Define an attribute once and return its number."""
        if name not in self._attributes:
            above = kind
            above = self.node(self._unit, unit, above) if unit else above
            above = self.node(self._alias, alias, above) if alias else above
            self._attributes[name] = self.node(8, name, self.node(10, properties, above))
        return self._attributes[name]

    def path(self, names: Sequence[str], attribute: str = "region") -> int:
        """Write the regions of a call path and return the number of its last node."""
        key = tuple(names)
        if key not in self._paths:
            above = self.path(names[:-1], attribute) if len(names) > 1 else -1
            kind = "mpi.function" if names[-1].startswith("MPI_") else attribute
            number = self.attribute(kind, STRING, _NESTED)
            self._paths[key] = self.node(number, names[-1], above)
        return self._paths[key]

    def record(
        self, names: Sequence[str], values: Mapping[str, object], *, unit: str = "sec"
    ) -> None:
        """Write one record with `values` by attribute, such as the MPI rank."""
        numbers = [
            self.attribute(
                name,
                {"mpi.rank": INT, "omp.sync": STRING}.get(name, DOUBLE),
                _AS_VALUE,
                unit="" if name in {"mpi.rank", "omp.sync"} or "count" in name else unit,
            )
            for name in values
        ]
        ref = f",ref={self.path(names)}" if names else ""
        attributes = "=".join(map(str, numbers))
        data = "=".join(map(str, values.values()))
        self.lines.append(f"__rec=ctx{ref},attr={attributes},data={data}")

    def globals(self, told: Mapping[str, object]) -> None:
        """Write the metadata of the run."""
        above = -1
        for name, value in told.items():
            above = self.node(self.attribute(name, STRING, _GLOBAL), value, above)
        if told:
            self.lines.append(f"__rec=globals,ref={above}")

    def text(self) -> str:
        """Return the text of the file."""
        return "".join(f"{line}\n" for line in self.lines)


PATHS = ((), ("main",), ("main", "solve"), ("main", "solve", "MPI_Allreduce"), ("main", "io"))
INCLUSIVE = {
    (): 0.5,
    ("main",): 100.0,
    ("main", "solve"): 80.0,
    ("main", "solve", "MPI_Allreduce"): 20.0,
    ("main", "io"): 4.0,
}
"""Sums over 4 processes: main takes 4 s exclusive per process; only one process calls io."""


def summed(processes: int = 4, **told: object) -> str:
    """Return a file with inclusive sums over processes, as the spot service writes it."""
    writer = Writer()
    for path in PATHS:
        value = INCLUSIVE[path] * processes / 4
        present = 1 if path and path[-1] == "io" else processes
        values = {
            "min#inclusive#sum#time.duration": f"{0.9 * value / processes:.6f}",
            "max#inclusive#sum#time.duration": f"{1.1 * value / processes:.6f}",
            "avg#inclusive#sum#time.duration": f"{value / present:.6f}",
            "sum#inclusive#sum#time.duration": f"{value:.6f}",
        }
        writer.record(path, values)
    known = {"mpi.world.size": processes, "executablepath": "/opt/bin/app"}
    writer.globals({"cali.caliper.version": "2.10.0", **known, **told})
    return writer.text()


def per_rank(values: Mapping[Sequence[str], Sequence[float]], name: str = "sum#sum#time.duration"):
    """Return a file with a value per call path and rank."""
    writer = Writer()
    for path, of_ranks in values.items():
        for rank, value in enumerate(of_ranks):
            writer.record(path, {"mpi.rank": rank, name: value})
    writer.globals({"mpi.world.size": len(next(iter(values.values())))})
    return writer.text()
