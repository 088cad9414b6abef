"""Origin of a page: command, versions, settings of the models, hashes of the inputs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from callpath_modeler.fingerprints import Fingerprint
from callpath_modeler.fitted import Fitted
from callpath_modeler.report.page.content import Provenance
from callpath_modeler.report.page.markup import Html, cell, head, joined, pairs, table, tag
from callpath_modeler.units import counted

_MOST = 500
"""Largest number of inputs that are listed."""


def provenance_section(making: Provenance, fitted: Fitted) -> Html:
    """Return everything that is needed to repeat the page and to compare the inputs."""
    versions = ", ".join(f"{name} {version}" for name, version in making.versions)
    settings = {**fitted.settings, "repetitions": fitted.models.aggregate}
    settings["hypotheses"] = _listed(json.loads(settings["hypotheses"]))
    return joined(
        pairs(
            [
                ("command", tag("code", making.command)),
                ("versions", versions),
                *(("configuration", _configured(one)) for one in making.configuration),
                *((name, value) for name, value in settings.items()),
            ]
        ),
        *_inputs(making.inputs),
    )


def _listed(space: Mapping[str, object]) -> str:
    """Return the settings of a space of hypotheses as text."""
    parts = []
    for name, held in space.items():
        words = ", ".join(map(str, held)) if isinstance(held, list) else str(held).lower()
        if words:
            parts.append(f"{name.replace('_', ' ')}: {words}")
    return "; ".join(parts)


def _configured(one: Fingerprint) -> Html:
    return joined(one.path, " · SHA-256 ", tag("code", one.sha256))


def _inputs(inputs: Sequence[Fingerprint]) -> list[Html]:
    heads = [head("input"), head("size", right=True), head("SHA-256")]
    body = [
        tag(
            "tr",
            tag("th", one.path, scope="row"),
            cell("-" if one.size is None else f"{one.size} B", right=True),
            cell(tag("code", one.sha256) if one.sha256 else _without(one)),
        )
        for one in inputs[:_MOST]
    ]
    more = counted(len(inputs) - _MOST, "more input")
    rest = [tag("p", f"… {more}", class_="aside")] if len(inputs) > _MOST else []
    shown = tag("details", tag("summary", counted(len(inputs), "input")),
                table(heads, body, caption="Inputs"), *rest)  # fmt: skip
    return [shown]


def _without(one: Fingerprint) -> str:
    return "no longer exists" if one.size is None else "too large to be hashed"
