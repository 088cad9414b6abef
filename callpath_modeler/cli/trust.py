"""`cpmodel trust`: directories whose configuration files may decide."""

from __future__ import annotations

import stat
from pathlib import Path

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.option_groups import option
from callpath_modeler.errors import UsageError
from callpath_modeler.printable import shell_word


@click.command("trust")
@click.argument("directories", nargs=-1, metavar="[DIR]...", type=click.Path(readable=False))
@option("--remove", "Trust these directories no longer.")
@click.pass_context
def command(ctx: click.Context, /, *, directories: tuple[str, ...], remove: bool) -> None:
    """Let the cpmodel.toml of a directory decide, e.g. exclude call paths; list such directories.

    A cpmodel.toml beside profiles may describe them: names of runs, parameters, units, the metric.
    Its other keys are not used, because the file may come from whoever made the profiles. Look at
    the file before you trust its directory. Directories below DIR are not trusted.

    The list is in your own configuration file. Without DIR, the command prints it.
    """
    from callpath_modeler import config
    from callpath_modeler.cli.configured_command import read_files
    from callpath_modeler.config import change_directories, resolved, trusted_directories

    console: Console = ctx.obj
    places = config.config_paths()
    known = trusted_directories(read_files(ctx.find_root(), places.files()))
    if not directories:
        if remove:
            raise UsageError("--remove: no directory is named", hint="cpmodel trust --remove DIR")
        console.result("".join(f"{each}\n" for each in known))
        if not known:
            console.note("no directory is trusted: cpmodel trust DIR")
        return
    if places.user is None:
        raise UsageError(
            "you have no directory for configuration files", hint="set the variable HOME"
        )
    chosen = [_checked(each, known, remove=remove) for each in directories]

    def change(present: list[str]) -> list[str]:
        if remove:
            return [each for each in present if resolved(Path(each).expanduser()) not in chosen]
        return [*present, *(each for each in dict.fromkeys(chosen) if each not in known)]

    change_directories(places.user, change)
    for each in chosen:
        console.note(f"{places.user}: {each} is {'no longer trusted' if remove else 'trusted'}")
        if not remove:
            _note_effect(console, Path(each))


def _note_effect(console: Console, directory: Path) -> None:
    """Print why trust in a directory has no effect, or too much."""
    from callpath_modeler import config

    file = directory / config.NAME
    applies = config.find_upwards(directory)
    if applies is not None and applies != file:
        console.note(
            f"{directory} has no {config.NAME}. Its runs use {applies}, for which this trust does "
            f"not hold. After you have read that file: "
            f"cpmodel trust {shell_word(str(applies.parent))}"
        )
    elif applies is None:
        console.note(f"{directory} has no {config.NAME}, so nothing changes until there is one")
    for each in (directory, file):
        if each.exists() and each.stat().st_mode & stat.S_IWOTH:
            console.note(
                f"all users of this machine can write to {each}, so they can decide about your "
                f"results: chmod o-w {shell_word(str(each))}"
            )


def _checked(directory: str, known: list[str], *, remove: bool) -> str:
    """Return the resolved path of a directory; raise `UsageError` if it cannot be changed."""
    from callpath_modeler.config import resolved

    if not directory:
        raise UsageError("the name of a directory is empty", hint="is a shell variable empty?")
    path = resolved(directory)
    if remove and path not in known:
        raise UsageError(f"{directory}: not trusted", hint="`cpmodel trust` lists the directories")
    if not remove and not Path(path).is_dir():
        raise UsageError(f"{directory}: no directory", hint="name the directory of cpmodel.toml")
    return path
