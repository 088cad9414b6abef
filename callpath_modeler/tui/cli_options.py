"""Options of `cpmodel views` that describe the view of a session."""

from __future__ import annotations

from collections.abc import Sequence

from callpath_modeler.profile.view_request import ViewRequest


def to_cli_options(request: ViewRequest) -> Sequence[str]:
    """Return the options of `cpmodel views` for a view.

    Options that a configuration file can set are always included, because the view may differ.
    """
    words = ["--view", str(request.kind)]
    if request.by != ViewRequest().by:
        words += ["--group", ",".join(request.by)]
    if request.inclusive is not None:
        words.append("-i" if request.inclusive else "-e")
    words += ["--min-share", f"{request.least:g}", "-n", "all"]
    if request.depth is not None:
        words += ["--depth", str(request.depth)]
    for option, text in (("--zoom", request.zoom), ("--filter", request.keep)):
        words += [option, text] if text else []
    for option, paths in (("--open", request.opened), ("--close", request.closed)):
        for path in paths:
            words += [option, path]
    words += ["--sort", str(request.sort)]
    words += ["--reverse"] if request.reverse else []
    words += ["--lines", str(request.most)] if request.most is not None else []
    return words
