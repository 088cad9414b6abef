"""Everything that a command can refuse before it opens the first profile.

A command refuses invalid values, results that cannot be written or would replace an input, and
workers that cannot work. It also refuses to run on ranks of MPI that nobody told it about, because
all of them would do the same work. `CheckedCommand` calls `check` before a command begins.
"""

from __future__ import annotations

import atexit
import errno
import glob
import os
import secrets
import shutil
import string
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from callpath_modeler.cli.option_groups import option_sections
from callpath_modeler.errors import (
    CallpathModelerError,
    InputError,
    OutputError,
    UsageError,
    reason_of,
)


def check_values(ctx: click.Context) -> None:
    """Refuse values of options that no profile could make valid.

    Raises
    ------
    UsageError
        If a target, a pair of scales or the source of a parameter is invalid.
    """
    _check_targets(ctx.params)
    for text in ctx.params.get("parameters") or ():
        from callpath_modeler.readers.parameters import check_source

        name, _, source = text.partition("=")
        if name and source:
            check_source(name, source)


def _check_targets(given: dict[str, Any]) -> None:
    target, at = given.get("target"), given.get("at")
    words = [one for one in ((target, None), (None, at)) if isinstance(one[0] or one[1], str)]
    pairs = given.get("pairs") or ()
    if not words and not pairs:
        return
    # It imports numpy, which many commands do not need.
    from callpath_modeler.studies.question import parse_pairs, parse_target

    for target_text, at_text in words:
        parse_target(target_text, at_text, given.get("parameter"))
    parse_pairs(pairs)


_LAUNCHERS = (
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("PALS_SIZE", "PALS_RANKID"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
)
"""Variables with the number of processes and the number of this one, which launchers set."""
_BATCH = "BATCH"
"""Value of the variable ENVIRONMENT in a batch script of Slurm, which is one process."""


def note_of_same_work(ctx: click.Context) -> None:
    """Note, in one of several processes that a launcher of MPI started, that all do the same."""
    if ctx.params.get("executor") is not None or ctx.obj is None:
        return
    count, rank = _ranks(os.environ)
    if count < 2 or rank:
        return
    is_shared = any(each.name == "executor" for each in ctx.command.params)
    remedy = "add --executor mpi" if is_shared else "start it without mpiexec or srun"
    ctx.obj.note(f"{count} processes do the same work, each all of it; {remedy}")


def _ranks(variables: Mapping[str, str]) -> tuple[int, int]:
    """Return the number of processes that a launcher started, and the number of this one."""
    for size, rank in _LAUNCHERS:
        if _number(variables.get(size)) > 1:
            return _number(variables[size]), _number(variables.get(rank))
    # An allocation and its batch script know the number of tasks as well, before srun starts them.
    if "SLURM_PROCID" in variables and variables.get("ENVIRONMENT") != _BATCH:
        return _number(variables.get("SLURM_NTASKS")), _number(variables["SLURM_PROCID"])
    return 1, 0


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else 0


CONFIGURATION_FILES = "callpath_modeler.configuration_files"
"""Key of the configuration files that a command follows, in the metadata of its context."""

_TRACE, _COMPANION = ".otf2", ".def"


class OutputPath(click.Path):
    """The file or folder of a result.

    Attributes
    ----------
    replaces : whether ``--force`` may replace a folder
    is_history : results are added to the file, and it stays
    """

    def __init__(
        self, replaces: Callable[[Path], bool] | None = None, *, is_history: bool = False
    ) -> None:
        super().__init__(readable=False, path_type=Path)
        self.replaces = replaces or (lambda _: False)
        self.is_history = is_history


class CheckedCommand(click.Command):
    """A command that refuses what it can before it begins, and whose help groups its options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options in groups."""
        for heading, records in option_sections(self, ctx).items():
            with formatter.section(heading):
                formatter.write_dl(records)
        if ctx.parent is not None:
            formatter.write_paragraph()
            formatter.write_text(
                f"The options of `{ctx.find_root().info_name} --help`, such as -q, apply as well."
            )

    def invoke(self, ctx: click.Context) -> Any:
        """Check the options and run the command."""
        check(ctx)
        return super().invoke(ctx)


class _Output(Struct, frozen=True):
    """A result that a command will write.

    Attributes
    ----------
    option : name of its option or argument
    path : file or folder
    type : type of the option
    """

    option: str
    path: Path
    type: OutputPath

    @property
    def elsewhere(self) -> str:
        """The remedy if the result cannot be written."""
        is_option = self.option.startswith("-")
        return f"choose another place with {self.option}" if is_option else "choose another place"


def check(ctx: click.Context) -> None:
    """Refuse the options of a command that are wrong whatever its profiles contain.

    Raises
    ------
    UsageError
        If a value is invalid, or a worker has another build or does not see the profiles.
    OutputError
        If a result cannot be written, or would replace an input.
    """
    note_of_same_work(ctx)
    check_values(ctx)
    outputs = list(_outputs(ctx))
    for number, output in enumerate(outputs):
        _check_output(ctx, output, others=outputs[:number])
    _check_workers(ctx)


def check_default_output(ctx: click.Context, path: Path) -> None:
    """Check the default of ``-o``, which the names of the profiles decide.

    Raises
    ------
    OutputError
        As in `check`.
    """
    (option,) = (each for each in ctx.command.params if each.name == "output")
    assert isinstance(option.type, OutputPath)
    _check_output(ctx, _Output("-o", path, option.type), others=())


def _outputs(ctx: click.Context) -> Iterator[_Output]:
    for option in ctx.command.params:
        path = ctx.params.get(option.name or "")
        if isinstance(option.type, OutputPath) and isinstance(path, Path):
            is_argument = isinstance(option, click.Argument)
            name = option.human_readable_name if is_argument else option.opts[0]
            yield _Output(name, path, option.type)


def _check_output(ctx: click.Context, output: _Output, others: Sequence[_Output]) -> None:
    path = output.path
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            return  # /dev/stdout, a named pipe
        if path.exists() and _is_input(path, *_inputs(ctx, output)):
            raise OutputError(
                f"{output.option} is an input: {path}",
                hint=f"{output.elsewhere}; even --force replaces no input",
            )
        for other in others:
            if path.resolve() == other.path.resolve():
                raise OutputError(
                    f"{output.option} and {other.option} name the same file: {path}",
                    hint="give each result a file of its own",
                )
        if not output.type.is_history:
            is_other = path.is_dir() and not output.type.replaces(path)
            _check_present(path, is_other=is_other, force=bool(ctx.params.get("force")))
        _check_folder(path)
        if any(map(_is_store, path.resolve().parents)):
            raise OutputError(
                f"{output.option} is in a store of models: {path}",
                hint=f"{output.elsewhere}; a store holds only its own files",
            )
    except OSError as cause:
        raise OutputError(
            f"{path}: cannot be written: {reason_of(cause)}",
            hint=output.elsewhere,
        ) from cause


def _check_present(path: Path, *, is_other: bool, force: bool) -> None:
    from callpath_modeler.support.atomic import refuse_present

    refuse_present(path, in_the_way=is_other, overwrite=force)


def _check_folder(path: Path) -> None:
    """Raise `OSError` if no file can be made in the folder of a result."""
    folder = path.parent
    folder.stat()
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    disk = os.statvfs(folder)
    left = disk.f_bavail if os.geteuid() else disk.f_bfree
    if disk.f_blocks and not left:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _inputs(ctx: click.Context, output: _Output) -> tuple[list[Path], list[Path]]:
    """Return the sources that a command reads, and the single files that it reads."""
    sources: list[Path] = []
    files: list[Path] = [Path(each) for each in ctx.meta.get(CONFIGURATION_FILES, ())]
    for option in ctx.command.params:
        is_argument = isinstance(option, click.Argument)
        is_path = isinstance(option.type, click.Path) and not isinstance(option.type, OutputPath)
        is_script = option.name == "reader"
        if not (is_argument or is_path or is_script) or isinstance(option.type, OutputPath):
            continue
        # A history can keep predictions and correct later ones at the same time.
        if output.type.is_history and not is_argument:
            continue
        (sources if is_argument else files).extend(_named(ctx, option))
    return sources, files


def _named(ctx: click.Context, option: click.Parameter) -> Iterator[Path]:
    """Yield the present paths that the value of an option or argument names."""
    given = ctx.params.get(option.name or "")
    for text in given if isinstance(given, tuple) else (given,):
        if isinstance(text, str | Path):
            yield from _expanded(str(text))


def _expanded(text: str) -> list[Path]:
    """Return the paths of a source that exist."""
    path = Path(text)
    with suppress(OSError, ValueError):
        if path.exists():
            return [path]
        if glob.has_magic(text):
            return [Path(each) for each in glob.glob(text, recursive=True)]  # noqa: PTH207
    return []


def _is_input(path: Path, sources: Sequence[Path], files: Sequence[Path]) -> bool:
    """Return whether a present file or folder is an input, or has one, or is a part of one."""
    named = [*sources, *files]
    if any(path.samefile(each) for each in named):
        return True
    whole = path.resolve()
    if path.is_dir() and any(each.resolve().is_relative_to(whole) for each in named):
        return True
    above = [each for each in sources if each.is_dir() and whole.is_relative_to(each.resolve())]
    if any(_is_store(each) for each in above):
        return True
    from callpath_modeler.readers.discover import MANIFEST

    if above and path.name == MANIFEST:
        return True
    if not (above or path.stat().st_nlink > 1 or any(map(_may_list, sources))):
        return False
    return _is_profile(path, whole, sources, bool(above))


def _may_list(source: Path) -> bool:
    """Return whether a source can name files elsewhere, or has files that it does not name."""
    return source.is_dir() or source.suffix.lower() in {".toml", _TRACE}


def _is_store(path: Path) -> bool:
    from callpath_modeler.store import is_stored

    return is_stored(path)


def _is_profile(path: Path, whole: Path, sources: Sequence[Path], is_below: bool) -> bool:
    """Return whether a file or folder is one of the profiles of sources, or a part of one.

    Parameters
    ----------
    path, whole : the file as the user named it, and without symbolic links
    is_below : a source is a folder that contains it
    """
    from callpath_modeler.readers.discover import discover, is_general
    from callpath_modeler.readers.registry import Registry

    registry = Registry.of_installed()
    profiles = []
    for source in sources:
        # The command itself reports a source without a profile.
        with suppress(CallpathModelerError):
            profiles += [run.path for run in discover([source], registry)]
    for profile in profiles:
        place = profile.resolve()
        parts = {place, place.with_suffix("")} if place.suffix == _TRACE else {place}
        if place.suffix == _TRACE and whole == place.with_suffix(_COMPANION):
            return True
        if path.samefile(profile) or any(whole.is_relative_to(part) for part in parts):
            return True
        if path.is_dir() and place.is_relative_to(whole):
            return True
    if not is_below:
        return False
    # The other contents of a folder without profiles are not known.
    return not profiles or (registry.match(path) is not None and not is_general(path))


def _check_workers(ctx: click.Context) -> None:
    """Refuse workers elsewhere that do not see the profiles."""
    executor = ctx.params.get("executor")
    if executor is None:
        return
    from callpath_modeler.support.executors import refuse_blind_workers

    # Only profiles are several; a history, or a file of expectations, stays with this process.
    sources = [
        each for each in ctx.command.params if isinstance(each, click.Argument) and each.nargs != 1
    ]
    refuse_blind_workers(executor, [path for each in sources for path in _named(ctx, each)])


_LETTERS = 16
_AT_ONCE = 1 << 20
_GZIP = b"\x1f\x8b"


def stored() -> Path:
    """Write standard input to a file, which is deleted at the end of the process.

    Its folder has a name of letters only, because numbers in names are taken for parameters.

    Raises
    ------
    UsageError
        If standard input is a terminal.
    InputError
        If it is empty.
    """
    if sys.stdin.isatty():
        raise UsageError("-: standard input is a terminal", hint="e.g. cpmodel rank - < runs.csv")
    name = "".join(secrets.choice(string.ascii_lowercase) for _ in range(_LETTERS))
    folder = Path(tempfile.gettempdir()) / f"cpmodel-{name}"
    folder.mkdir(mode=0o700)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    try:
        first = sys.stdin.buffer.read(_AT_ONCE)
    except OSError as cause:
        what = f"-: standard input cannot be read: {reason_of(cause)}"
        raise InputError(what, hint="e.g. cpmodel rank - < runs.csv") from cause
    if not first.strip():
        raise InputError("-: standard input is empty", hint="e.g. cpmodel rank - < runs.csv")
    try:
        path = folder / f"standard-input{_ending(first)}"
    except zlib.error as cause:
        raise InputError("-: standard input is damaged gzip", hint="pack it again") from cause
    with path.open("wb") as file:
        file.write(first)
        shutil.copyfileobj(sys.stdin.buffer, file, _AT_ONCE)
    return path


def _ending(content: bytes) -> str:
    """Return the ending of a file with a content; text has many formats, which readers tell."""
    if content.startswith(_GZIP):
        unpacked = zlib.decompressobj(wbits=31).decompress(content, _AT_ONCE)
        return f"{_ending(unpacked)}.gz" if not unpacked.startswith(_GZIP) else ".gz"
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        return ".json"
    if start.startswith(b"{"):
        # Each line of JSON Lines is an object.
        line, _, rest = start.partition(b"\n")
        return ".jsonl" if line.rstrip().endswith(b"}") and rest.strip() else ".json"
    return ".txt"
