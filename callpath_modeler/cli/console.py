"""Standard output, standard error, colour, progress, exit status; only this module writes."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from callpath_modeler.cli import EXIT_BUG, EXIT_CLOSED_PIPE, EXIT_INTERRUPT, EXIT_MEMORY
from callpath_modeler.errors import (
    DISK_IS_FULL,
    LONGEST,
    CallpathModelerError,
    InputError,
    OutputError,
    PluginError,
    is_lack_of_memory,
    reason_of,
)
from callpath_modeler.printable import in_one_line, printable, shortened
from callpath_modeler.units import counted, to_ascii

if TYPE_CHECKING:
    from rich.text import Text

    from callpath_modeler.diagnostics import Finding

_PROGRESS_AFTER, _LEFT_AFTER = 0.5, 2.0
"""Seconds of a stage after which its progress is shown, and the remaining time."""
_SHOWN_FINDINGS = 3


class Notes(Enum):
    """The form of findings after a result."""

    FULL = "what happened, why it matters and what to do"
    SHORT = "what happened"
    COUNT = "how many there are"


class ClosedPipeError(Exception):
    """Standard output was closed; click would turn a `BrokenPipeError` into status 1."""


class Console:
    """Output of results and messages, and its style.

    Results, and nothing else, go to standard output. Messages go to standard error.
    """

    def __init__(
        self,
        *,
        verbose: bool = False,
        quiet: bool = False,
        color: str = "auto",
        ascii_only: bool = False,
        progress: bool = True,
        ignored: Collection[str] = (),
    ) -> None:
        self.verbose = verbose
        self.quiet = quiet
        self._color = color
        self._progress = progress and not quiet
        self._ignored = ignored
        self.ascii_only = ascii_only or not _is_unicode(sys.stdout)

    @classmethod
    def asked(cls, options: Mapping[str, Any]) -> Console:
        """Return the console for the options before the command."""
        return cls(
            verbose=options["verbose"],
            quiet=options["quiet"],
            color=options["color"],
            ascii_only=options["ascii_only"],
            progress=not options["no_progress"],
            ignored=(options["ignored"] or "").split(","),
        )

    @property
    def is_terminal(self) -> bool:
        """Return whether results go to a terminal."""
        return sys.stdout.isatty()

    @property
    def is_interactive(self) -> bool:
        """Return whether there is a terminal for input and output."""
        streams = (sys.stdin, sys.stdout, sys.stderr)
        return os.environ.get("TERM") != "dumb" and all(stream.isatty() for stream in streams)

    def without_color(self) -> None:
        """Turn off colour in libraries that draw on the terminal, if the user wants none."""
        if not self._use_color():
            os.environ["NO_COLOR"] = "1"

    @property
    def width(self) -> int | None:
        """Width of the terminal in cells, or None if nothing needs to be cut."""
        if "COLUMNS" in os.environ or self.is_terminal:
            return shutil.get_terminal_size().columns
        return None

    @property
    def height(self) -> int | None:
        """Height of the terminal in lines, or None where results go elsewhere."""
        return shutil.get_terminal_size().lines if self.is_terminal else None

    def result(self, text: str) -> None:
        """Write a result; characters that the terminal's encoding lacks become question marks."""
        _send(text.encode(sys.stdout.encoding or "ascii", "replace"))

    def lines(self, lines: Iterable[Text | str]) -> None:
        """Write lines without wrapping or cutting, in colour if the user wants it."""
        color = self._use_color()
        for line in lines:
            safe = _without_controls(line)
            text = _ansi(safe) if color and not isinstance(safe, str) else str(safe)
            self.result(self.dress(text) + "\n")

    def dress(self, text: str) -> str:
        """Return `text` in characters that the terminal can show."""
        return to_ascii(text) if self.ascii_only else text

    def _use_color(self) -> bool:
        if self._color != "auto":
            return self._color == "always"
        if os.environ.get("NO_COLOR"):
            return False
        if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") != "0":
            return True
        return self.is_terminal and os.environ.get("TERM") != "dumb"

    def note(self, text: str, *, asked: bool = False) -> None:
        """Write a message; one that the user `asked` for appears even with ``--quiet``."""
        if asked or not self.quiet:
            _say(self.dress(text))

    def findings(self, findings: Sequence[Finding], notes: Notes = Notes.FULL) -> None:
        """Write the most important findings, and the number of the others."""
        for line in self._said(findings, notes):
            self.note(line)

    def lines_of_findings(self, findings: Sequence[Finding], notes: Notes) -> int:
        """Return the number of terminal lines that findings need."""
        if self.quiet or not sys.stderr.isatty():
            return 0
        return sum(len(_wrapped(self.dress(line))) for line in self._said(findings, notes))

    def _said(self, findings: Sequence[Finding], notes: Notes) -> list[str]:
        from callpath_modeler.cli.view_options import listing_of_findings
        from callpath_modeler.diagnostics import by_kind, in_short, summarise

        heard = self.heard(findings)
        if self.verbose:
            return summarise(heard)
        listing = listing_of_findings(click.get_current_context(silent=True))
        if notes is Notes.FULL:
            return summarise(heard, _SHOWN_FINDINGS, listing)
        if notes is Notes.SHORT:
            return in_short(heard, _SHOWN_FINDINGS, listing)
        count = len(by_kind(heard))
        return [f"{counted(count, 'note')}: {listing}"] if count else []

    def heard(self, findings: Sequence[Finding]) -> Sequence[Finding]:
        """Return the findings that the user does not ignore."""
        silent = () if self.verbose else self._ignored
        return [finding for finding in findings if finding.code not in silent]

    def progress(self, stage: str, *, noted: bool = True) -> Callable[[int, int], None]:
        """Return a callback that shows the progress of `stage` on a terminal, after 0.5 s.

        From 2 s on, it estimates the remaining time from the parts that are done. Elsewhere, if it
        is `noted`, one line tells at the end how long the stage took.
        """
        began = time.monotonic()

        def report(done: int, total: int) -> None:
            nonlocal began
            if not done:
                began = time.monotonic()
            seconds = time.monotonic() - began
            if not self._progress or seconds < _PROGRESS_AFTER:
                return
            if sys.stderr.isatty():
                left = seconds / done * (total - done) if done and seconds >= _LEFT_AFTER else None
                more = "" if left is None else f", {_about(left)} left"
                _talk("\r\x1b[K" if done == total else f"\r\x1b[K{stage} {done}/{total} ...{more}")
            elif done == total and noted:
                self.note(f"{stage} {done}/{total} {seconds:.1f} s")

        return report

    def ended(self, stage: str, seconds: float) -> None:
        """Show with ``--verbose`` how many seconds a stage took."""
        if self.verbose:
            self.note(f"stage {stage}: {seconds:.2f} s")

    def write(
        self, content: str | bytes | Iterator[bytes], path: Path | None, *, overwrite: bool
    ) -> None:
        """Write a result to a file, or to standard output, text in UTF-8 everywhere.

        Pieces of bytes are written one by one, and only to files.

        Raises
        ------
        OutputError
            If the file exists and may not be replaced, or cannot be written.
        """
        if isinstance(content, str):
            # File names need not be text: their bytes are written unchanged.
            content = content.encode("utf-8", "surrogateescape")
            if path is None:
                _send(content)
                return
        if path is None:
            raise OutputError("this format is binary", hint="write it to a file with -o")
        from callpath_modeler.support.atomic import write_file

        write_file(path, content, overwrite=overwrite)

    def write_pieces(self, pieces: Iterable[str], path: Path | None, *, overwrite: bool) -> None:
        """Write pieces of text one by one, like `write`; an error leaves no file."""
        content = (piece.encode("utf-8", "surrogateescape") for piece in pieces)
        if path is None:
            for piece in content:
                _send(piece)
            return
        from callpath_modeler.support.atomic import write_file

        write_file(path, content, overwrite=overwrite)


def _about(seconds: float) -> str:
    """Return a time that is only estimated, with as many digits as that allows."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    minutes = seconds / 60
    return f"about {round(minutes)} min" if minutes < 90 else f"about {minutes / 60:.1f} h"


def _without_controls(line: Text | str) -> Text | str:
    """Return a line without control characters, which could come from a name in a file."""
    plain = line if isinstance(line, str) else line.plain
    if all(map(str.isprintable, plain.split("\n"))):
        return line
    safe = "\n".join(in_one_line(part, "?") for part in plain.split("\n"))
    if isinstance(line, str):
        return safe
    # Each character is replaced by one, so the positions of styles stay valid.
    copy = line.copy()
    copy.plain = safe
    return copy


def _ansi(line: Text) -> str:
    from rich.console import Console as RichConsole

    rich = RichConsole(
        force_terminal=True,
        color_system="standard",
        width=10_000,
        highlight=False,
        legacy_windows=False,
    )
    with rich.capture() as capture:
        rich.print(line, end="", soft_wrap=True)
    return capture.get()


def _is_unicode(stream: TextIO) -> bool:
    return (getattr(stream, "encoding", None) or "ascii").lower().replace("-", "") == "utf8"


def _send(content: bytes) -> None:
    """Write to standard output.

    Raises
    ------
    ClosedPipeError
        If the reader is gone.
    OutputError
        If it cannot be written to, for another reason.
    """
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError as cause:
        raise ClosedPipeError from cause
    except OSError as cause:
        raise _no_output(cause) from cause


def _no_output(cause: OSError) -> OutputError:
    _abandon(sys.stdout)
    said = f"standard output: {reason_of(cause)}"
    return OutputError(said, hint="write elsewhere with -o")


def _abandon(stream: TextIO) -> None:
    """Discard unwritten output, so that Python does not report it again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_streams() -> None:
    """Replace standard streams that were closed, as by `>&-`, with the null device."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _say(text: str) -> None:
    # Quotations from files and names must not control the terminal.
    text = "\n".join(map(printable, text.split("\n")))
    if sys.stderr.isatty():
        text = "\n".join("\n".join(_wrapped(line)) for line in text.split("\n"))
    encoding = sys.stderr.encoding or "ascii"
    _talk(text.encode(encoding, "replace").decode(encoding) + "\n")


def _wrapped(line: str) -> list[str]:
    """Return a line as the terminal shows it, with indented continuation lines."""
    width = shutil.get_terminal_size().columns
    return textwrap.wrap(line, width, subsequent_indent="  ")


def _talk(text: str) -> None:
    """Write to standard error; a closed stream changes neither result nor status."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        _abandon(sys.stderr)


def run(command: click.Command) -> NoReturn:
    """Run the command line and end the process with the right status."""
    _open_streams()
    try:
        left = command.main(prog_name="cpmodel", standalone_mode=False)
        sys.stdout.flush()
        # With standalone_mode off, click returns the exit status of a command.
        status = left if isinstance(left, int) else 0
    except CallpathModelerError as error:
        status = _refuse(error)
    except click.UsageError as error:
        status = _complain(error.format_message(), _usage_hint(error), error.exit_code)
    except click.ClickException as error:
        status = _complain(error.format_message(), None, error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        status = EXIT_INTERRUPT
    except (ClosedPipeError, BrokenPipeError):
        _abandon(sys.stdout)  # the reader has closed the pipe
        status = EXIT_CLOSED_PIPE
    except PermissionError as cause:
        what = f"{cause.filename}: {cause.strerror}"
        status = _complain(what, "check the permissions", InputError.exit_code)
    except Exception as error:  # noqa: BLE001 - any other exception is a bug of this package
        status = _end_of(error)
    raise SystemExit(status)


def _end_of(error: Exception) -> int:
    """Report an error that no module of this package raises on purpose; return the status."""
    if is_lack_of_memory(error):
        return _lack_of_memory()
    if isinstance(error, OSError) and error.errno in DISK_IS_FULL:
        if not error.filename:
            return _refuse(_no_output(error))
        what = f"{error.filename}: cannot be written: {reason_of(error)}"
        return _complain(what, "make room, or choose another place", OutputError.exit_code)
    return _report_bug(error)


def _lack_of_memory() -> int:
    what = "there is too little memory for this command"
    remedy = "read fewer runs (--where) or metrics (-m) at a time, with fewer processes (-j 1)"
    return _complain(what, remedy, EXIT_MEMORY)


def _usage_hint(error: click.UsageError) -> str:
    if isinstance(error, click.NoSuchOption) and error.ctx:
        name = error.option_name.lstrip("-")
        for option in error.ctx.command.params:
            if option.name == "format_" and name in getattr(option.type, "choices", ()):
                return f"{error.ctx.command_path} ... -f {name}"
    if isinstance(error, click.MissingParameter) and error.ctx:
        # click names the wrong argument if the first one takes several words.
        pieces = error.ctx.command.collect_usage_pieces(error.ctx)
        return " ".join([error.ctx.command_path, *pieces])
    return f"{error.ctx.command_path} --help" if error.ctx else "cpmodel --help"


def _complain(message: str, hint: str | None, status: int) -> int:
    _say(f"cpmodel: {shortened(' '.join(message.split()), LONGEST)}")
    if hint:
        _say(f"  hint: {hint}")
    return status


def _refuse(error: CallpathModelerError) -> int:
    if isinstance(error.__cause__, OSError) and is_lack_of_memory(error.__cause__):
        return _lack_of_memory()
    if isinstance(error, PluginError) and error.__cause__:
        _trace(error.__cause__)
    return _complain(error.message, error.hint, error.exit_code)


def _trace(error: BaseException) -> None:
    """Show the origin of an unexpected error with ``--verbose``."""
    if {"-v", "--verbose"} & set(sys.argv):
        import traceback

        _say("".join(traceback.format_exception(error)))


def _report_bug(bug: Exception) -> int:
    _trace(bug)
    what = f"{type(bug).__name__}: {bug}"
    return _complain(
        f"this is a bug: {what}", "`cpmodel -v ...` shows where; please report that", EXIT_BUG
    )
