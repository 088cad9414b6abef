"""Controls of a served page: a form that asks for another view of the same experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from callpath_modeler.report.page.markup import Html, joined, tag

SHARES = {"1%": "at least 1 %", "0.1%": "at least 0.1 %", "0": "all"}
"""Choices of the least share of a line, by their text in a query."""
VALUES = {"": "usual", "inclusive": "inclusive", "exclusive": "exclusive"}
"""Choices of the leading values."""


@dataclass(frozen=True, slots=True)
class PageQuery:
    """The texts of the controls, as the query of an address has them; "" = the usual.

    Attributes
    ----------
    metric : name of the metric
    target : value of the parameter
    view : top-down, bottom-up or flat
    values : inclusive or exclusive
    sort : order of siblings
    share : least share of a line
    filter : pattern of call paths
    """

    metric: str = ""
    target: str = ""
    view: str = ""
    values: str = ""
    sort: str = ""
    share: str = ""
    filter: str = ""

    @classmethod
    def of(cls, query: Mapping[str, Sequence[str]]) -> PageQuery:
        """Return the controls of a parsed query; unknown names are ignored."""
        names = [field.name for field in fields(cls)]
        return cls(**{name: query[name][-1].strip() for name in names if query.get(name)})


def controls(
    query: PageQuery,
    *,
    metrics: Sequence[str],
    views: Sequence[str],
    sorts: Sequence[str],
    parameter: str,
    command: str = "",
    refused: str = "",
) -> Html:
    """Return the form, the command of the view, and the reason why a query was refused.

    Parameters
    ----------
    query : the texts that are filled in
    metrics, views, sorts : choices
    parameter : name of the parameter
    command : command that prints the view; "" = none
    refused : the reason; "" = the query was answered
    """
    form = tag(
        "form",
        _choice("metric", "metric", query.metric, dict(zip(metrics, metrics, strict=True))),
        _typed("target", f"target {parameter}", query.target),
        _choice("view", "view", query.view, dict(zip(views, views, strict=True))),
        _choice("values", "values", query.values, VALUES),
        _choice("sort", "order", query.sort, dict(zip(sorts, sorts, strict=True))),
        _choice("share", "lines", query.share, SHARES),
        _typed("filter", "filter, e.g. main/**/MPI_*", query.filter),
        tag("button", "Show"),
        class_="controls",
        method="get",
    )
    said = tag("p", refused, class_="refused", role="alert") if refused else ""
    same = tag("p", "the same on the command line: ", tag("code", command), class_="aside")
    return joined(form, said, same if command else "")


def _typed(name: str, label: str, value: str) -> Html:
    field = tag("input", name=name, value=value, autocomplete="off", spellcheck="false")
    return tag("label", label, field)


def _choice(name: str, label: str, value: str, choices: Mapping[str, str]) -> Html:
    options = [
        tag("option", text, value=key, selected=key == value) for key, text in choices.items()
    ]
    return tag("label", label, tag("select", *options, name=name))
