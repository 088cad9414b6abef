"""What a session shows, as the options of `cpmodel views` that ask for the same."""

from __future__ import annotations

from collections.abc import Sequence

from callpath_modeler.profile.wanted import Wanted


def words_of(wanted: Wanted) -> Sequence[str]:
    """Return the options of `cpmodel views` that ask for a view in full.

    What a configuration file can set is always among them: the view may have been changed since.
    """
    words = ["--view", str(wanted.kind)]
    if wanted.by != Wanted().by:
        words += ["--group", ",".join(wanted.by)]
    if wanted.inclusive is not None:
        words.append("-i" if wanted.inclusive else "-e")
    words += ["--min-share", f"{wanted.least:g}", "-n", "all"]
    if wanted.depth is not None:
        words += ["--depth", str(wanted.depth)]
    for option, text in (("--zoom", wanted.zoom), ("--filter", wanted.keep)):
        words += [option, text] if text else []
    for option, paths in (("--open", wanted.opened), ("--close", wanted.closed)):
        for path in paths:
            words += [option, path]
    words += ["--sort", str(wanted.sort)]
    words += ["--reverse"] if wanted.reverse else []
    words += ["--lines", str(wanted.most)] if wanted.most is not None else []
    return words
