"""The formats that commands write specifications in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.configured_command import Configured
from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import OUTPUT, option, output_option, was_asked
from callpath_modeler.errors import CallpathModelerError, PluginError, UsageError, nearest_or_all

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.generators.interface import Generator, Options, Written
    from cpmodel_commspec.specification import Specification

_NUMBER = re.compile(r"\d+")


def _known(ctx: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Return the name of a format, or fail with the nearest one."""
    from cpmodel_commspec.generators.interface import installed

    if name is not None and name not in installed():
        words = f"no format {name!r}; {nearest_or_all(name, installed())}"
        raise click.BadParameter(words, ctx, option)
    return name


def _completed(
    _ctx: click.Context, _option: click.Parameter, incomplete: str
) -> list[str | CompletionItem]:
    """Return the names of formats that begin so."""
    from cpmodel_commspec.generators.interface import installed

    return [name for name in installed() if name.startswith(incomplete)]


FORMAT = output_option(
    "-f, --format FORMAT",
    "Format, such as text, c or json. Default: by the ending of FILE.",
    "format_",
    callback=_known,
    shell_complete=_completed,
)
TIMES = option(
    "--times",
    "Computation of a program in C: the mean of all rounds in few lines, or seconds that differ.",
    type=click.Choice(["mean", "histogram"]),
    default="mean",
    group=OUTPUT,
)
ALLOW_UNSAFE = option("--allow-unsafe", "Write a program even if it can hang.", group=OUTPUT)


class WithFormats(Configured):
    """A command whose help lists the formats."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the formats of all installed packages."""
        from cpmodel_commspec.generators.interface import described

        with formatter.section("Formats"):
            formatter.write_dl(described())
        super().format_epilog(ctx, formatter)


def chosen(format_: str | None, output: Path | None) -> Generator:
    """Return the generator that options mean.

    Raises
    ------
    UsageError
        If there is none, or if it needs a directory.
    PluginError
        If it cannot be imported.
    """
    from cpmodel_commspec.generators.interface import load, of_file

    generator = of_file(output) if format_ is None else load(format_)
    if generator.is_directory and output is None:
        raise UsageError(
            f"format {generator.name!r} has several files", hint="give a directory with -o DIR"
        )
    return generator


def require_times(ctx: click.Context, generator: Generator | None) -> None:
    """Check that ``--times``, if it is given, changes the output; None is any number of processes.

    Raises
    ------
    UsageError
        If it does not.
    """
    if was_asked(ctx, "times") and (generator is None or generator.name != "c"):
        raise UsageError(
            "--times is for programs in C of one number of processes",
            hint="leave it out, or write -f c" + " with --at P" * (generator is None),
        )


def safety(
    told: Specification, subject: str, generator: Generator, *, allow_unsafe: bool
) -> list[Finding]:
    """Return a finding if the program can hang.

    Raises
    ------
    DataError
        If the format can be run, and would not come to its end.
    """
    from callpath_modeler.diagnostics import Finding
    from cpmodel_commspec.simulation.deadlocks import deadlock, mismatches, require_safe

    if generator.is_program:
        found = require_safe(told, allow_unsafe=allow_unsafe)
    else:
        found = None if any(mismatches(told)) else deadlock(told)
    return [] if found is None else [Finding("CPM144", subject, str(found))]


def write(
    console: Console, told: Specification, generator: Generator, output: Path | None, times: str,
    *, force: bool,
) -> None:  # fmt: skip
    """Write a specification to a file, into a directory, or to standard output.

    Raises
    ------
    DataError
        If the format cannot express the specification.
    PluginError
        If the generator fails.
    OutputError
        If the output exists and may not be replaced, or cannot be written.
    """
    from cpmodel_commspec.generators.interface import Options

    width = None if output is not None else console.width
    content = _content(told, generator, Options(width, console.ascii_only, times))
    if isinstance(content, str | bytes):
        console.write(content, output, overwrite=force)
    else:
        assert output is not None
        _write_directory(output, content, overwrite=force)


def _content(told: Specification, generator: Generator, options: Options) -> Written:
    from callpath_modeler.readers.registry import error_line

    who = f"format {generator.name!r}"
    remedy = f"report this to its authors ({type(generator).__module__})"
    try:
        content = generator.write(told, options)
    except (CallpathModelerError, MemoryError):
        raise
    except Exception as cause:
        raise PluginError(f"{who} failed: {error_line(cause)}", hint=remedy) from cause
    if isinstance(content, str | bytes) is generator.is_directory:
        what = "one file" if generator.is_directory else "no file"
        raise PluginError(f"{who} wrote {what}, against its contract", hint=remedy)
    if isinstance(content, Mapping):
        for name in content:
            if name in {"", ".", ".."} or not name.isprintable() or set(name) & set("/\\:"):
                raise PluginError(f"{who}: {name!r} is no name of a file", hint=remedy)
    return content


def _write_directory(path: Path, files: Mapping[str, str | bytes], *, overwrite: bool) -> None:
    from callpath_modeler.support.atomic import new_directory

    in_the_way = path.exists() and not _is_earlier(path, files)
    with new_directory(path, in_the_way=in_the_way, overwrite=overwrite) as folder:
        for name, content in files.items():
            data = content if isinstance(content, bytes) else content.encode()
            (folder / name).write_bytes(data)


def _is_earlier(path: Path, files: Iterable[str]) -> bool:
    """Tell whether a directory holds only files of an earlier output, perhaps of other ranks."""
    if not path.is_dir():
        return False
    ours = {_NUMBER.sub("0", name) for name in files}
    return all(one.is_file() and _NUMBER.sub("0", one.name) in ours for one in path.iterdir())
