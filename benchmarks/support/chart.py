"""Bars on a logarithmic scale, as SVG; pure."""

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

_COLOURS = ("#3465a4", "#c4612b", "#4e9a06", "#75507b")
_ROW, _BAR, _LEFT, _WIDTH, _RIGHT = 16, 12, 430, 520, 90


def svg(rows: Sequence[Mapping[str, Any]], labels: Sequence[str]) -> str:
    """One group of bars for each row that holds numbers; the longer the bar, the larger the number."""
    drawn = [row for row in rows if all(isinstance(row.get(label), int | float) for label in labels)]
    numbers = [row[label] for row in drawn for label in labels if row[label] > 0]
    low, high = (math.log10(min(numbers)) - 0.1, math.log10(max(numbers))) if numbers else (0.0, 1.0)
    parts: list[str] = []
    y = 40
    for row in drawn:
        parts.append(_text(10, y + _BAR, f"{row['pods']} pods: {row['what']}"))
        for label, colour in zip(labels, _COLOURS * len(labels), strict=False):
            share = (math.log10(row[label]) - low) / (high - low or 1) if row[label] > 0 else 0.0
            width = max(1.0, share * _WIDTH)
            parts.append(f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{colour}"/>')
            parts.append(_text(_LEFT + width + 4, y + _BAR - 2, f"{row[label]:g}"))
            y += _ROW
        y += 8
    legend = "".join(
        f'<rect x="{10 + 140 * n}" y="10" width="12" height="12" fill="{_COLOURS[n % len(_COLOURS)]}"/>'
        + _text(26 + 140 * n, 21, label)
        for n, label in enumerate(labels)
    )
    size = f'width="{_LEFT + _WIDTH + _RIGHT}" height="{y + 10}"'
    style = "font-family:sans-serif;font-size:12px"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} style="{style}">{legend}{"".join(parts)}</svg>\n'


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y}">{html.escape(text)}</text>'
