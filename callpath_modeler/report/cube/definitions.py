"""Definitions of Cube 4 files, in XML: metrics, regions, call paths and locations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from callpath_modeler.printable import printable, xml_text
from callpath_modeler.profile.schema import Region

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<cube version="{version}">\n'
END = "</cube>\n"


@dataclass(frozen=True, slots=True)
class CubeMetric:
    """A metric of a Cube file.

    Attributes
    ----------
    name : unique name
    unit : unit of measurement as Cube writes it: ``"sec"``, ``"bytes"``, ``"occ"``
    kind : ``"INCLUSIVE"``, ``"EXCLUSIVE"`` or another type of Cube; "" = none
    dtype : type of the stored values, such as ``"DOUBLE"``
    description : one line of text
    is_ghost : True = viewers hide the metric
    """

    name: str
    unit: str
    kind: str = "EXCLUSIVE"
    dtype: str = "DOUBLE"
    description: str = ""
    is_ghost: bool = False


def quoted(text: str) -> str:
    """Return a foreign text for an element or an attribute in double quotes, in one line."""
    return escape(xml_text(printable(text)), {'"': "&quot;"})


def attribute_texts(attributes: Mapping[str, str]) -> Iterator[str]:
    """Yield the attributes of a file."""
    for key, value in attributes.items():
        yield f'<attr key="{quoted(key)}" value="{quoted(value)}"/>\n'


def metric_texts(metrics: Iterable[CubeMetric]) -> Iterator[str]:
    """Yield the metrics, which are numbered in this order."""
    yield "<metrics>\n"
    for number, metric in enumerate(metrics):
        kind = f' type="{metric.kind}"' if metric.kind else ""
        ghost = ' viztype="GHOST"' if metric.is_ghost else ""
        name = quoted(metric.name)
        yield (
            f'<metric id="{number}"{kind}{ghost}>\n<disp_name>{name}</disp_name>\n'
            f"<uniq_name>{name}</uniq_name>\n<dtype>{metric.dtype}</dtype>\n"
            f"<uom>{quoted(metric.unit)}</uom>\n<url></url>\n"
            f"<descr>{quoted(metric.description)}</descr>\n</metric>\n"
        )
    yield "</metrics>\n"


def region_texts(regions: Iterable[Region]) -> Iterator[str]:
    """Yield the regions, which are numbered in this order."""
    for number, region in enumerate(regions):
        yield (
            f'<region id="{number}" mod="{quoted(region.file)}" begin="{region.line}" end="-1">\n'
            f"<name>{quoted(region.name)}</name>\n"
            f"<mangled_name>{quoted(region.mangled)}</mangled_name>\n"
            f"<paradigm>{quoted(region.paradigm)}</paradigm>\n"
            f"<role>{quoted(region.role)}</role>\n<url></url>\n<descr></descr>\n</region>\n"
        )


def call_path_texts(
    parents: Sequence[int],
    regions: Sequence[int],
    *,
    ids: Sequence[int] | None = None,
    contents: Mapping[int, str] | None = None,
) -> Iterator[str]:
    """Yield the call paths; a deep tree needs no recursion.

    Parameters
    ----------
    parents : [n] row of the caller in preorder, -1 = root
    regions : [n] number of the region
    ids : [n] ids of the call paths; None = their rows
    contents : elements inside of call paths, such as parameters, by row
    """
    open_rows: list[int] = []
    inside = contents or {}
    for row, (caller, region) in enumerate(zip(parents, regions, strict=True)):
        while open_rows and open_rows[-1] != caller:
            open_rows.pop()
            yield "</cnode>\n"
        yield f'<cnode id="{row if ids is None else ids[row]}" calleeId="{region}">\n'
        if row in inside:
            yield inside[row]
        open_rows.append(row)
    yield "</cnode>\n" * len(open_rows)


def parameter_text(key: str, value: str) -> str:
    """Return a parameter of a call path."""
    return f'<parameter partype="string" parkey="{quoted(key)}" parvalue="{quoted(value)}"/>\n'


def system_texts(location: str) -> Iterator[str]:
    """Yield a system of one location, for values that are reduced over processes."""
    yield (
        '<system>\n<systemtreenode Id="0">\n<name>all processes</name>\n<class>machine</class>\n'
        '<systemtreenode Id="1">\n<name>all processes</name>\n<class>node</class>\n'
        f'<locationgroup Id="0">\n<name>{quoted(location)}</name>\n<rank>0</rank>\n'
        f'<type>process</type>\n<location Id="0">\n<name>{quoted(location)}</name>\n'
        "<rank>0</rank>\n<type>thread</type>\n</location>\n</locationgroup>\n"
        "</systemtreenode>\n</systemtreenode>\n<topologies>\n</topologies>\n</system>\n"
    )


def document(*parts: Iterable[str], version: str = "4.4") -> bytes:
    """Return a whole document with the given parts."""
    pieces = [HEAD.format(version=version)]
    for part in parts:
        pieces.extend(part)
    pieces.append(END)
    return "".join(pieces).encode()
