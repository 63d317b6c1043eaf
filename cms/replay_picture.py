"""The picture of `cms replay` under other rules, as SVG: when each task waited and held, on both sides. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from html import escape
from typing import Final

from cms.other_rules import Comparison, TaskCourse

_NAMES, _WIDTH, _ROW, _HEAD = 260, 720, 26, 40  # pixels
_MARKS: Final = 6
_RECORDED, _OTHER, _INK = "#767676", "#0b6bcb", "#333"


def draw_comparison(made: Comparison, courses: Sequence[TaskCourse]) -> str:
    """Two lines for each of the tasks: above as recorded, below with the other rules; thin while it waits."""
    height = _HEAD + _ROW * len(courses) + 20
    box, words = (
        f"0 0 {_NAMES + _WIDTH + 50} {height}",
        f"{len(courses)} tasks that come otherwise under the other rules",
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" font-family="sans-serif" font-size="11" role="img">',
        f"<title>{words}</title>",
        *_axis(made, height),
    ]
    for number, one in enumerate(courses):
        top = _HEAD + _ROW * number
        parts.append(f'<text x="4" y="{top + 14}" fill="{_INK}">{escape(_short_label(one))}</text>')
        parts += _line(made, one, one.granted_s, top + 7, _RECORDED)
        parts += _line(made, one, one.other_granted_s, top + 15, _OTHER)
    return "\n".join([*parts, "</svg>"])


def _axis(made: Comparison, height: int) -> Iterator[str]:
    for mark in range(_MARKS + 1):
        at_s = made.since_s + (made.until_s - made.since_s) * mark / _MARKS
        x, words = _x(made, at_s), f"{datetime.fromtimestamp(at_s).astimezone():%d %b %H:%M}"
        yield f'<path d="M{x:.1f} 24V{height - 10}" stroke="#ddd"/>'
        yield f'<text x="{x:.1f}" y="18" text-anchor="middle" fill="{_INK}">{words}</text>'
    yield f'<text x="4" y="18" fill="{_RECORDED}">as recorded</text>'
    yield f'<text x="90" y="18" fill="{_OTHER}">with these rules</text>'
    if made.diverged_s is not None:
        x = _x(made, made.diverged_s)
        yield f'<path d="M{x:.1f} 24V{height - 10}" stroke="{_INK}" stroke-dasharray="4 3"/>'
        yield f'<text x="{x:.1f}" y="34" fill="{_INK}">an estimate from here</text>'


def _line(made: Comparison, one: TaskCourse, granted_s: float | None, y: int, color: str) -> Iterator[str]:
    """A task that was never granted waits to the end; one that has not ended holds to the end."""
    until = made.until_s if granted_s is None else granted_s
    yield f'<path d="M{_x(made, one.asked_s):.1f} {y}H{_x(made, until):.1f}" stroke="{color}" stroke-dasharray="2 2"/>'
    if granted_s is not None:
        held_s = None if one.ended_s is None or one.granted_s is None else one.ended_s - one.granted_s
        end_s = made.until_s if held_s is None else granted_s + held_s
        yield f'<path d="M{_x(made, granted_s):.1f} {y}H{_x(made, end_s):.1f}" stroke="{color}" stroke-width="6"/>'


def _x(made: Comparison, at_s: float) -> float:
    within = min(max(at_s, made.since_s), made.until_s) - made.since_s
    return _NAMES + _WIDTH * within / ((made.until_s - made.since_s) or 1.0)


def _short_label(one: TaskCourse) -> str:
    words = f"{one.task.id}, {one.task.action}"
    return words if len(words) <= 40 else words[:39] + "…"
