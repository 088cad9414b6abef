"""`cpmodel browse --web`: the views on a page for a browser on this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from callpath_modeler.cli.console import Console
from callpath_modeler.cli.page_server import LOOPBACK, PageServer, Response
from callpath_modeler.cli.report import provenance_of
from callpath_modeler.cli.view_options import parse_share
from callpath_modeler.errors import CallpathModelerError, OutputError, UsageError, did_you_mean

if TYPE_CHECKING:
    from callpath_modeler.analysis.answer import Answer
    from callpath_modeler.fitted import Fitted
    from callpath_modeler.profile.view_request import ViewRequest
    from callpath_modeler.report.page.controls import PageQuery
    from callpath_modeler.tui.services import BrowserServices

_CARDS = 10
"""Number of call paths with charts on a page."""


class WebViews:
    """The pages of an experiment.

    Parameters
    ----------
    ctx : context of the command
    services : models, targets and commands
    forecast : the first predictions
    request : the first view
    """

    def __init__(
        self,
        ctx: click.Context,
        services: BrowserServices,
        forecast: Answer,
        request: ViewRequest,
    ) -> None:
        self._ctx = ctx
        self._services = services
        self._first = forecast
        self._request = request
        self._shown = forecast

    def answer(self, query: Mapping[str, Sequence[str]]) -> Response:
        """Return the page for a query; a query that makes no sense is told on the usual page."""
        from callpath_modeler.report.page.controls import PageQuery

        # An empty field of the form is an empty filter, but no query is the command line's view.
        asked = PageQuery.of(query) if query else PageQuery(filter=self._request.keep)
        try:
            return Response(200, self._page(asked), _policy())
        except CallpathModelerError as error:
            hint = f" ({error.hint})" if error.hint else ""
            refused = f"{error.message}{hint}"
            return Response(400, self._page(PageQuery(), asked, refused), _policy())

    def _page(self, query: PageQuery, typed: PageQuery | None = None, refused: str = "") -> str:
        """Return the page of a query.

        Parameters
        ----------
        query : the query
        typed : texts that the controls show again, because they were refused
        refused : the reason
        """
        from callpath_modeler.analysis.rank import By, rank
        from callpath_modeler.explanation import explain_all
        from callpath_modeler.profile.view_request import Sort
        from callpath_modeler.profile.views import ViewKind
        from callpath_modeler.question import findings_at
        from callpath_modeler.report.page.content import PageContent
        from callpath_modeler.report.page.controls import controls
        from callpath_modeler.report.page.document import served_page
        from callpath_modeler.units import parameter_value

        made = self._forecast(query)
        fitted, target = made.fitted, made.target
        request = self._view(query, made)
        by = By.LOSS if made.is_comparison else By.VALUE
        ranking = rank(
            fitted,
            target,
            by,
            inclusive=request.leads_inclusive and fitted.metric.additive,
            predicted=made.inputs.predicted,
        )
        content = PageContent(
            ranking=ranking,
            forecast=made,
            causes=explain_all(ranking, ranking.order[:_CARDS].tolist()),
            check=None,
            findings=findings_at(fitted, target),
            making=provenance_of(self._ctx, self._ctx.params["experiment"], fitted),
            top=_CARDS,
        )
        filled = typed or _filled(query, fitted, parameter_value(target), request)
        form = controls(
            filled,
            metrics=fitted.experiment.readable,
            views=list(map(str, ViewKind)),
            sorts=[str(sort) for sort in Sort if sort in made.sorts],
            parameter=fitted.parameter,
            command=self._services.command(request, made.inputs, target),
            refused=refused,
        )
        return served_page(content, request, form)

    def _forecast(self, query: PageQuery) -> Answer:
        """Return the predictions for a query; the last ones are kept."""
        from callpath_modeler.analysis.answer import answer_at
        from callpath_modeler.analysis.answer_inputs import AnswerInputs

        first, shown = self._first, self._shown
        inputs = next((one.inputs for one in (shown, first)
                       if one.fitted.metric.name == query.metric), None)  # fmt: skip
        if not query.metric:
            inputs = first.inputs
        if inputs is None:
            models = self._services.models_of(query.metric, self._services.pair)
            inputs = AnswerInputs(models, predicted=first.inputs.predicted)
        target = first.target
        if query.target:
            target = self._services.target_of(query.target, inputs.fitted)
        for one in (shown, first):
            if one.inputs is inputs and one.target == target:
                return one
        self._shown = answer_at(inputs, target)
        return self._shown

    def _view(self, query: PageQuery, made: Answer) -> ViewRequest:
        """Return the view of a query."""
        from dataclasses import replace

        from callpath_modeler.profile.view_request import Sort
        from callpath_modeler.profile.views import ViewKind
        from callpath_modeler.report.page.controls import VALUES
        from callpath_modeler.report.page.tree import page_request

        request = self._request
        if query.view:
            kind = ViewKind(_chosen("view", query.view, list(map(str, ViewKind))))
            if kind is not request.kind:
                request = replace(request, kind=kind, zoom="", opened=(), closed=())
        if query.values:
            leads = _chosen("values", query.values, [name for name in VALUES if name])
            request = replace(request, inclusive=leads == "inclusive")
        order = request.sort if request.sort in made.sorts else made.usual_sort
        if query.sort:
            order = Sort(_chosen("order", query.sort, list(map(str, made.sorts))))
        least = request.least
        if query.share:
            least = parse_share(query.share, "lines")
        return page_request(replace(request, keep=query.filter, sort=order, least=least))


def _chosen(what: str, text: str, choices: Sequence[str]) -> str:
    if text not in choices:
        hint = did_you_mean(text, choices) or f"one of {', '.join(choices)}"
        raise UsageError(f"no {what} {text!r}", hint=hint)
    return text


def _filled(query: PageQuery, fitted: Fitted, target: str, request: ViewRequest) -> PageQuery:
    """Return the texts of the controls for the view that is shown."""
    from dataclasses import replace

    return replace(
        query,
        metric=fitted.metric.name,
        target=query.target or target,
        view=str(request.kind),
        sort=str(request.sort),
        share=query.share or ("1%" if request.least else "0"),
    )


def _policy() -> str:
    from callpath_modeler.report.page.document import page_script, policy

    return policy(page_script())


def serve(console: Console, views: WebViews, port: int) -> None:
    """Serve pages until Ctrl+C.

    Raises
    ------
    OutputError
        If the port cannot be used.
    """
    try:
        server = PageServer(views.answer, port)
    except OSError as cause:
        what = f"port {port}: {cause.strerror or cause}"
        raise OutputError(what, hint="omit --port for a free one") from cause
    with server:
        console.result(f"{server.url}\n")
        told = "Open this address in a browser on this machine. Ctrl+C ends the server."
        console.note(told, asked=True)
        if os.environ.get("SSH_CONNECTION"):
            forward = f"{server.port}:{LOOPBACK}:{server.port}"
            console.note(
                f"From your own machine, run this first: ssh -L {forward} {socket.gethostname()}",
                asked=True,
            )
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.note("the server has ended")
