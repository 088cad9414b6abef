"""Reader of Cube profiles, and an opened profile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from callpath_modeler.errors import InputError
from callpath_modeler.input_limits import InputLimits
from callpath_modeler.readers.base import API_VERSION, Agreement, Match, Workers
from cpmodel_scorep import anchor, cube3
from cpmodel_scorep.container import (
    ANCHOR,
    COPY_IT_AGAIN,
    Container,
    ContainerShape,
    first_block,
    opened,
    shape_of,
)
from cpmodel_scorep.definitions import MalformedError
from cpmodel_scorep.latest import Latest
from cpmodel_scorep.profile import CubeProfile


class CubexReader:
    """Reader of profiles of Score-P, Scalasca and the Cube tools."""

    api_version: ClassVar[int] = API_VERSION
    name: ClassVar[str] = "scorep"
    description: ClassVar[str] = "Score-P and Scalasca profiles (CUBE 4 and CUBE 3)"
    suffixes: ClassVar[tuple[str, ...]] = (".cubex", ".cube", ".cube.gz")

    def __init__(self) -> None:
        self._latest = Latest()

    def match(self, path: Path) -> Match:
        """Return whether `path` is a Cube profile, by its first block."""
        head = first_block(path)
        if not head:
            return Match.NO
        shape = shape_of(head)
        names = (b"anchor.xml", b"remapping.spec", b".data", b".index")
        if shape is ContainerShape.TAR and head[:100].rstrip(b"\0").endswith(names):
            return Match.CONTENT
        if shape is ContainerShape.XML and b"<cube" in head:
            return Match.CONTENT
        return Match.NAME if path.name.lower().endswith(self.suffixes) else Match.NO

    @contextmanager
    def open(self, path: Path) -> Iterator[CubeProfile]:
        """Open `path`.

        Raises
        ------
        InputError
            If the file is not a Cube profile, or its definitions cannot be read.
        """
        with opened(path) as container:
            try:
                profile = _profile(container, self._latest)
            except MalformedError as error:
                raise InputError(f"{path}: {error}", hint=COPY_IT_AGAIN) from None
            yield profile

    @contextmanager
    def open_for(self, workers: Workers, path: Path) -> Iterator[CubeProfile]:
        """Open `path`; workers reduce parts of its rows.

        Raises
        ------
        InputError
            As in `open`.
        """
        with self.open(path) as profile:
            profile.share_between(workers, self.open)
            yield profile

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a reader that has read nothing."""
        return type(self), ()

    def verify(self, path: Path) -> Sequence[Agreement]:
        """Return the comparison of every stored value with an independent reader."""
        from cpmodel_scorep.verify import verify

        with self.open(path) as profile:
            return verify(profile)


def _profile(container: Container, latest: Latest) -> CubeProfile:
    limits = InputLimits.of(container.path)
    if container.shape is ContainerShape.XML:
        text = container.content(container.members[""])
        rest, values = cube3.split(text)
        definitions, repaired = anchor.parse(rest, str(container.path), latest, limits)
        held = cube3.values(values, definitions, str(container.path))
        layout = latest.layout_of(definitions)
        return CubeProfile(container, definitions, layout, held=held, repaired=repaired)
    member = container.members.get(ANCHOR)
    if member is None:
        raise InputError(
            f"{container.path}: the definitions (anchor.xml), which are written last, are missing: "
            "the file is cut off, or its run was killed",
            hint="copy the file again, or repeat the run",
        )
    where = f"{container.path}: anchor.xml at byte {member.offset}"
    definitions, repaired = anchor.parse(container.content(member), where, latest, limits)
    layout = latest.layout_of(definitions)
    return CubeProfile(container, definitions, layout, held=None, repaired=repaired)
