"""Time, core-hours and energy at a target, and the cheapest scales, as sentences and as JSON."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from callpath_modeler.analysis.scale_costs import scale_costs, searches_scales
from callpath_modeler.units import parameter_value, rough_value, setting_text, significant

if TYPE_CHECKING:
    from collections.abc import Callable

    from callpath_modeler.analysis.answer import Ranking
    from callpath_modeler.analysis.scale_costs import CheapestScale, ScaleCost
    from callpath_modeler.analysis.uncertain import Total
    from callpath_modeler.report.layout import TextStyle

_HOURS = "core-hours"


def scale_cost_notes(ranking: Ranking, *, style: TextStyle) -> list[str]:
    """Return what a program costs at the target, and where it is cheapest and greenest."""
    costs = scale_costs(ranking)
    if costs is None or costs.core_hours is None:
        return []

    def hours(total: Total) -> str:
        value, low, high = (significant(end) if math.isfinite(end) else "" for end in total)
        return f"{value} {_HOURS}" + (f" ({low} … {high})" if low and high else "")

    def joules(total: Total) -> str:
        value, low, high = total
        ends = "" if math.isnan(low) else f" ({style.interval(low, high, 'J')})"
        return f"{style.amount(value, 'J')}{ends}"

    at = setting_text(ranking.fitted.at(ranking.target))
    said = [f"Costs at {at}: {hours(costs.core_hours.at_target)}, with one core for each process"]
    if costs.energy is not None:
        said.append(f"and {joules(costs.energy.at_target)} of {costs.metric}")
    lines = [f"{', '.join(said)}."]
    if ranking.fitted.is_measured_only:
        return lines
    if not searches_scales(ranking.fitted):
        if ranking.fitted.parameter == "p":
            lines.append(
                "A cheapest p needs the same work at every p, which is strong scaling "
                "(--scaling strong)."
            )
        return lines
    each = (("Cheapest", "cheap", "Core-hours", costs.core_hours, hours),
            ("Greenest", "green", "The energy", costs.energy, joules))  # fmt: skip
    for name, word, what, cost, told in each:
        if cost is not None and cost.cheapest is not None:
            lines.append(_sentence(ranking, cost.cheapest, (name, word, what), told))
    return lines


def _sentence(
    ranking: Ranking,
    cheapest: CheapestScale,
    words: tuple[str, str, str],
    told: Callable[[Total], str],
) -> str:
    """Return where a cost is least, and whether that is an end of the range.

    ``Greenest at about p = 12: 30 kJ (27 … 33 kJ). p = 8 … 20 may be as green.``
    """
    (name, word, what), points = words, ranking.fitted.points
    first, last = (_scale(cheapest, value) for value in (cheapest.first, cheapest.last))
    if not cheapest.is_decided:
        return f"No p is clearly the {name.lower()}: p = {first} … {last} may be as {word}."
    where = f"p = {_scale(cheapest, cheapest.at)}"
    verb = "rise" if what.endswith("s") else "rises"
    fall = "fall" if what.endswith("s") else "falls"
    alone = "" if first == last else f" p = {first} … {last} may be as {word}."
    law = "over the whole range" if cheapest.is_monotone else "at this end of the range"
    match cheapest.end:
        case "smallest":
            return (
                f"{name} at {where}, the smallest run: {told(cheapest.total)}. {what} {verb} with "
                f"p {law}, and a smaller p was not measured.{alone}"
            )
        case "largest":
            named = "the largest run" if cheapest.until == points[-1] else "the target"
            return (
                f"{name} at {where}, {named}: {told(cheapest.total)}. {what} still {fall} with p "
                f"{law}, and a larger p may be {word}er.{alone}"
            )
        case _:
            beyond = ", beyond the largest run" if cheapest.at > points[-1] else ""
            return f"{name} at about {where}{beyond}: {told(cheapest.total)}.{alone}"


def _scale(cheapest: CheapestScale, value: float) -> str:
    """Return a scale in full if it is an end of the search, else rounded."""
    is_given = value in (cheapest.start, cheapest.until)
    return parameter_value(value) if is_given else rough_value(value)


def scale_cost_json(ranking: Ranking) -> dict[str, object]:
    """Return the JSON field with the costs of a program; nothing without energy."""
    costs = scale_costs(ranking)
    if costs is None:
        return {}
    energy = _cost_json(costs.energy)
    return {
        "costs": {
            "time": _total_json(costs.time),
            "core_hours": _cost_json(costs.core_hours),
            "energy": energy if energy is None else {"metric": costs.metric, **energy},
        }
    }


def _total_json(total: Total) -> dict[str, object]:
    value, low, high = total
    return {"at_target": value, "low": low, "high": high}


def _cost_json(cost: ScaleCost | None) -> dict[str, object] | None:
    if cost is None:
        return None
    found = cost.cheapest
    if found is None:
        return {**_total_json(cost.at_target), "cheapest": None}
    value, low, high = found.total
    return {
        **_total_json(cost.at_target),
        "cheapest": {
            "at": found.at,
            "value": value,
            "low": low,
            "high": high,
            "from": found.first,
            "to": found.last,
            "start": found.start,
            "until": found.until,
            "end": found.end or None,
            "is_monotone": found.is_monotone,
            "is_decided": found.is_decided,
        },
    }
