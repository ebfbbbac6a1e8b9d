"""Bar charts as SVG, drawn without a library.  No clock, no files."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

__all__ = ["bar_chart"]

_ROW, _LABEL, _BARS, _VALUE, _TOP = 22, 250, 420, 90, 44
_OURS, _PEER = "#2b6cb0", "#a0aec0"


def bar_chart(title: str, unit: str, bars: Sequence[tuple[str, float, bool]]) -> str:
    """One horizontal bar for each (label, value, is ours), in the given order; values are of ``unit``, from 0 on."""
    longest = max((value for _, value, _ in bars), default=0) or 1
    width, height = _LABEL + _BARS + _VALUE, _TOP + _ROW * len(bars) + 8
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="8" y="18" font-size="14" font-weight="bold">{escape(title)}</text>',
        f'<text x="8" y="34" fill="#4a5568">{escape(unit)}</text>',
    ]
    for index, (label, value, is_ours) in enumerate(bars):
        y = _TOP + _ROW * index
        length = max(1, round(_BARS * value / longest))
        lines += [
            f'<text x="{_LABEL - 8}" y="{y + 14}" text-anchor="end">{escape(label)}</text>',
            f'<rect x="{_LABEL}" y="{y + 2}" width="{length}" height="{_ROW - 6}" '
            f'fill="{_OURS if is_ours else _PEER}"/>',
            f'<text x="{_LABEL + length + 6}" y="{y + 14}">{value:.3g}</text>',
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"
