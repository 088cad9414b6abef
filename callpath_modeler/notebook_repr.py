"""Base classes of objects that notebooks display."""

from __future__ import annotations

from importlib import import_module

_HOME = "callpath_modeler.report.page.notebook"


class HtmlReprMixin:
    """An object that a notebook displays as HTML.

    The HTML is made by `report.page.notebook`, which is imported on demand. So an experiment or a
    ranking does not depend on pages.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module(_HOME).html_of(self))


class FigureReprMixin(HtmlReprMixin):
    """An object that also has a formula and a chart."""

    __slots__ = ()

    def _repr_latex_(self) -> str:
        return str(import_module(_HOME).latex_of(self))

    def _repr_svg_(self) -> str:
        return str(import_module(_HOME).svg_of(self))
