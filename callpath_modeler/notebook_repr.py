"""What notebooks show of our objects."""

from __future__ import annotations

from importlib import import_module

_HOME = "callpath_modeler.report.page.notebook"


class HtmlReprMixin:
    """Something that a notebook shows as HTML.

    How, is said far above it: that is looked for when a notebook asks, so that an experiment or a
    ranking needs to know nothing of pages.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(import_module(_HOME).html_of(self))


class FigureReprMixin(HtmlReprMixin):
    """Something that has a formula and a chart as well."""

    __slots__ = ()

    def _repr_latex_(self) -> str:
        return str(import_module(_HOME).latex_of(self))

    def _repr_svg_(self) -> str:
        return str(import_module(_HOME).svg_of(self))
