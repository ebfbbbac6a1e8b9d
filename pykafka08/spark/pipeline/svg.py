"""Charts of a report as SVG elements: dots over time, bars by day, windows of a group.

Elements of ElementTree, whose serializer escapes every text and attribute; colours are classes of the page's style.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement

__all__ = ["HATCH", "bars", "hatching", "steps"]

WIDTH, HEIGHT = 360, 150
LEFT, RIGHT, TOP, BOTTOM = 52, 10, 14, 22
HATCH = "unfinished"
"""Id of the pattern of :func:`hatching`."""
GAP = 0.12
"""Of a bar's width, if bars are wide enough to be told apart."""
NARROW = 4.0
SEEN = 6.0
"""Least width of a hatched bar, the last of which may reach into the right margin."""
CROWDED = 60
"""Points of a line; the dots of more are smaller."""


def hatching() -> Element:
    """The pattern for what is not finished; once in a page."""
    svg = Element("svg", {"width": "0", "height": "0", "aria-hidden": "true", "style": "position:absolute"})
    turned = {"width": "6", "height": "6", "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    pattern = SubElement(SubElement(svg, "defs"), "pattern", {"id": HATCH, **turned})
    SubElement(pattern, "rect", {"width": "6", "height": "6", "class": "paper"})
    SubElement(pattern, "rect", {"width": "2.5", "height": "6", "class": "mark"})
    return svg


def bars(
    title: str,
    values: Sequence[float],
    labels: Sequence[str],
    *,
    most: float | None = None,
    least: float | None = None,
    unfinished: int = 0,
) -> Element:
    """A bar for each value, in order, with ``labels`` below the first and the last.

    ``least`` and ``most`` are the bounds of the scale, for panels that are compared; the last ``unfinished`` bars are
    hatched.
    """
    low, high = _bounds(values, least, most)
    svg = _frame(title, low, high)
    width = (WIDTH - LEFT - RIGHT) / max(1, len(values))
    gap = GAP if width > NARROW else 0.0
    for number, value in enumerate(values):
        top, bottom = sorted((_y(value, low, high), _y(0, low, high)))
        is_unfinished = number >= len(values) - unfinished
        at = {
            "x": _text(LEFT + width * (number + gap / 2)),
            "width": _text(max(SEEN if is_unfinished else 0.5, width * (1 - gap))),
            "y": _text(top),
            "height": _text(max(0.5, bottom - top)),
        }
        style = {"class": "open", "fill": f"url(#{HATCH})"} if is_unfinished else {"class": "mark"}
        bar = SubElement(svg, "rect", {**at, **style})
        SubElement(bar, "title").text = f"{labels[number]}: {_number(value)}"
    _ends(svg, labels)
    return svg


def steps(title: str, points: Sequence[tuple[float, float]], labels: Sequence[str], *, end: float) -> Element:
    """Values at seconds of a run that lasted until ``end``: a dot each, joined by a line."""
    low, high = _bounds([value for _, value in points], 0, None)
    svg = _frame(title, low, high)
    places = [
        (LEFT + (WIDTH - LEFT - RIGHT) * min(1.0, at / max(end, 1e-3)), _y(value, low, high)) for at, value in points
    ]
    if len(places) > 1:
        joined = " ".join(f"{_text(x)},{_text(y)}" for x, y in places)
        SubElement(svg, "polyline", {"points": joined, "class": "line"})
    radius = "2.5" if len(places) <= CROWDED else "1.5"
    for (x, y), (at, value) in zip(places, points, strict=True):
        dot = SubElement(svg, "circle", {"cx": _text(x), "cy": _text(y), "r": radius, "class": "mark"})
        SubElement(dot, "title").text = f"after {at:,.1f} s: {_number(value)}"
    _ends(svg, labels)
    return svg


def _bounds(values: Sequence[float], least: float | None, most: float | None) -> tuple[float, float]:
    low = min([0.0, *values]) if least is None else least
    high = max([0.0, *values]) if most is None else most
    return low, high if high > low else low + 1


def _frame(title: str, low: float, high: float) -> Element:
    svg = Element("svg", {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "role": "img"})
    SubElement(svg, "title").text = title
    for value in dict.fromkeys((low, 0.0, (low + high) / 2, high)):
        y = _text(_y(value, low, high))
        kind = "axis" if not value else "grid"
        SubElement(svg, "line", {"x1": str(LEFT), "x2": str(WIDTH - RIGHT), "y1": y, "y2": y, "class": kind})
        is_crowded = value and value != high and abs(_y(value, low, high) - _y(0, low, high)) < 11
        if not is_crowded:
            place = {"x": str(LEFT - 5), "y": y, "dy": "0.32em", "text-anchor": "end"}
            SubElement(svg, "text", place).text = _number(value)
    return svg


def _ends(svg: Element, labels: Sequence[str]) -> None:
    if labels:
        place = {"y": str(HEIGHT - 6)}
        SubElement(svg, "text", {**place, "x": str(LEFT), "text-anchor": "start"}).text = labels[0]
    if len(labels) > 1:
        SubElement(svg, "text", {**place, "x": str(WIDTH - RIGHT), "text-anchor": "end"}).text = labels[-1]


def _y(value: float, low: float, high: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (high - value) / (high - low)


def _text(number: float) -> str:
    return f"{number:.1f}"


def _number(value: float) -> str:
    """Short enough for an axis."""
    for least, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= least:
            return f"{value / least:,.3g}{unit}"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"
