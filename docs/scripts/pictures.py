"""The pictures of the documentation, from runs of cpmodel with the sample profiles.

`make pictures` runs this script. Pictures of the terminal and of charts are SVG. Chromium takes the
pictures of HTML pages.
"""

from __future__ import annotations

import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from fcntl import ioctl
from html import escape, unescape
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

import callpath_modeler as cpm
from command_tree import ROOT

PICTURES = ROOT / "docs" / "pictures"
WORK = ROOT / "build" / "pictures"
LARGEST = 150_000
"""Maximum size of a picture in bytes."""

RUNS = "sample_profiles/stencil"
PREDICTED = f"{RUNS} --target 1024"
BUG = "**/find_owners"
"""A call path that grows, in the runs above."""
REAL_RUNS = "sample_profiles/lulesh"
FLAME_RUNS = "sample_profiles/snap"
CALL_PATH = "**/TimeIncrement/MPI_Allreduce"
CPMODEL = (sys.executable, "-m", "callpath_modeler")
COLUMNS = 100
_FONT_FROM_ELSEWHERE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_TEXT = re.compile(r'<text([^>]*) x="([\d.]+)"([^>]*) textLength="([\d.]+)"([^>]*)>(.*?)</text>')
_WORD = re.compile(r"[\u2580-\u259f\u2800-\u28ff]+|[^\s\u2580-\u259f\u2800-\u28ff]+")
"""Words, and sequences of drawing characters of charts, which many fonts lack."""
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")

COMMANDS = {
    "rank": (f"cpmodel rank {PREDICTED} -n 6", None),
    "show": (f"cpmodel show {PREDICTED} '{BUG}'", ("", "quality")),
    "requirements": (
        f"cpmodel show {REAL_RUNS} '{CALL_PATH}' --target 1000",
        ("requirements", "called by"),
    ),
    "excess": (f"cpmodel excess {REAL_RUNS} --pair 8,125 --view bottom-up --depth 2", None),
    "info": (f"cpmodel info {RUNS}", None),
    "check": (f"cpmodel check {RUNS} expectations.toml --all", None),
}
"""For each picture of the terminal, the command and the bounds of the shown part.

The bounds are the beginnings of the first line and of the line after the last. None = all lines.
"""


def printed(command: str) -> str:
    """Return the output of a command on a terminal, in colour."""
    words = [
        sys.executable,
        "-m",
        "callpath_modeler",
        "--color",
        "always",
        *shlex.split(command)[1:],
    ]
    environment = {**os.environ, "COLUMNS": str(COLUMNS)}
    done = subprocess.run(
        words, cwd=WORK, env=environment, stdout=subprocess.PIPE, check=False, encoding="utf-8"
    )
    # `check` exits with 1 if an expectation is broken.
    if done.returncode not in {0, 1}:
        raise SystemExit(f"{command}: exit status {done.returncode}")
    return done.stdout


def part_of(lines: list[Text], first: str, end: str) -> list[Text]:
    """Return the lines from the one that begins with `first` to the one before `end`."""
    start = next(k for k, line in enumerate(lines) if line.plain.startswith(first))
    stop = next(k for k, line in enumerate(lines) if k > start and line.plain.startswith(end))
    chosen = lines[start:stop]
    while chosen and not chosen[-1].plain.strip():
        chosen.pop()
    return chosen


def take_terminal(name: str) -> None:
    """Run a command, and save its output as a picture."""
    command, bounds = COMMANDS[name]
    lines = list(Text.from_ansi(printed(command)).split("\n", allow_blank=False))
    if bounds:
        lines = part_of(lines, *bounds)
    width = max(COLUMNS, *(line.cell_len for line in lines))
    console = Console(record=True, width=width, file=StringIO(), force_terminal=True)
    for line in [*lines, Text()]:
        console.print(line, soft_wrap=True)
    keep_svg(name, console.export_svg(title=command, theme=SVG_EXPORT_THEME, unique_id=name))


def take_browser() -> None:
    """Open `cpmodel browse` on a separate terminal, press keys, and save its screen."""
    keys = ",".join(["down"] * 10)  # to find_owners
    environment = {
        **os.environ,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TEXTUAL_PRESS": keys,
        "TEXTUAL_SCREENSHOT": "8",
        "TEXTUAL_SCREENSHOT_LOCATION": str(WORK),
        "TEXTUAL_SCREENSHOT_FILENAME": "browse.svg",
    }
    words = [*CPMODEL, "browse", *shlex.split(PREDICTED)]
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 32, 130, 0, 0))
    streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen(words, cwd=WORK, env=environment, **streams) as browser:
        os.close(theirs)
        try:
            while os.read(ours, 65_536):
                pass
        except OSError:
            pass  # the browser has closed its terminal
        os.close(ours)
    if browser.returncode:
        raise SystemExit(f"cpmodel browse: exit status {browser.returncode}")
    shown = (WORK / "browse.svg").read_text("utf-8")
    title = f"cpmodel browse {PREDICTED}"
    keep_svg("browse", shown.replace(">Browser<", f">{title}<"))


def keep_svg(name: str, text: str) -> None:
    """Write a picture without external resources."""
    text = _TEXT.sub(in_cells, _FONT_FROM_ELSEWHERE.sub("", text))
    (PICTURES / f"{name}.svg").write_text(text, encoding="utf-8")


def in_cells(text: re.Match[str]) -> str:
    """Return a text element split into words, so that the font does not shift columns."""
    before, x, after, length, rest, content = text.groups()
    signs = unescape(content)
    cell = float(length) / max(len(signs), 1)
    return "".join(
        f'<text{before} x="{float(x) + cell * word.start():.1f}"{after} '
        f'textLength="{cell * len(word[0]):.1f}"{rest}>{escape(word[0], quote=False)}</text>'
        for word in _WORD.finditer(signs)
    )


def take_page(name: str, page: Path, width: int, height: int) -> None:
    """Take a picture of the top of an HTML page."""
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None:
        raise SystemExit("Chromium is not installed, e.g. apt-get install chromium")
    switches = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    # The page reads its data after it is loaded.
    shot = ["--virtual-time-budget=20000", f"--window-size={width},{height}"]
    shot.append(f"--screenshot={PICTURES / name}.png")
    words = [found, *switches, *shot, page.as_uri()]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL, timeout=300)


def write_notebook_cell(ranking: cpm.Ranking, path: Path) -> None:
    """Write a page with a ranking as the output of a notebook cell."""
    source = (
        "import callpath_modeler as cpm\n\n"
        f'fitted = cpm.fit(cpm.load("{REAL_RUNS}"))\n'
        "cpm.rank(fitted, target=1000)"
    )
    path.write_text(
        f"""<!doctype html><meta charset="utf-8"><style>
body {{ margin: 16px; font: 14px sans-serif; background: white }}
.cell {{ display: grid; grid-template-columns: 60px 1fr; gap: 8px; margin-bottom: 12px }}
.cell > span {{ color: #616161; font: 13px monospace; padding-top: 8px }}
pre {{ background: #f5f5f5; border: 1px solid #e0e0e0; margin: 0; padding: 8px; font-size: 13px }}
</style>
<div class="cell"><span>In [1]:</span><pre>{escape(source)}</pre></div>
<div class="cell"><span>Out[1]:</span><div>{ranking._repr_html_()}</div></div>
""",
        encoding="utf-8",
    )


def take_python() -> None:
    """Take the pictures of objects in a notebook."""
    fitted = cpm.fit(cpm.load(ROOT / REAL_RUNS))
    model = fitted[CALL_PATH]
    # The text is black, and the site may have a dark background.
    chart = model._repr_svg_().replace("<svg ", '<svg style="background: white" ', 1)
    keep_svg("model", chart)
    page = WORK / "notebook.html"
    write_notebook_cell(cpm.rank(fitted, target=1000), page)
    take_page("notebook", page, 1280, 620)


def take_plots() -> None:
    """Draw the plots for papers."""
    options = {
        "plot-model.svg": f"show {REAL_RUNS} '{CALL_PATH}' --target 1000",
        "plot-ranking.svg": f"rank {REAL_RUNS} --target 1000 -n 6",
        "plot-excess.svg": f"excess {REAL_RUNS} --pair 8,125 -n 5 --min-share 5%",
    }
    for name, words in options.items():
        command = [*CPMODEL, "-q", *shlex.split(words), "--plot", str(PICTURES / name), "--force"]
        subprocess.run(command, cwd=WORK, check=True, stdout=subprocess.DEVNULL)


def take_flame() -> None:
    """Draw a flame graph."""
    command = [*CPMODEL, "-q", "export", str(ROOT / FLAME_RUNS), "--base", "49", "--force"]
    subprocess.run([*command, "-o", str(PICTURES / "flame.svg")], cwd=WORK, check=True)


def take_report() -> None:
    """Take a picture of the page of `cpmodel report`."""
    report = WORK / "report.html"
    printed_to = f"cpmodel report {PREDICTED} --force -o {report}"
    subprocess.run([*CPMODEL, *shlex.split(printed_to)[1:]], cwd=WORK, check=True)
    take_page("report", report, 1280, 690)


def main(names: Sequence[str]) -> None:
    """Take all pictures, or only those in `names`."""
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    (WORK / "sample_profiles").symlink_to(ROOT / "sample_profiles")
    PICTURES.mkdir(exist_ok=True)
    others = {
        "browse": take_browser,
        "notebook": take_python,
        "report": take_report,
        "plots": take_plots,
        "flame": take_flame,
    }
    for name in names or (*COMMANDS, *others):
        if name == "check":
            printed(f"cpmodel baseline {RUNS} -o expectations.toml")
        others[name]() if name in others else take_terminal(name)
        print(name)
    for picture in PICTURES.iterdir():
        if picture.stat().st_size > LARGEST:
            raise SystemExit(f"{picture.name} is larger than {LARGEST} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
