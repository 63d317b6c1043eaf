"""Templates of `-o jsonpath=…`, as kubectl has them: `{.items[*].meta.id}`, `{range .items[*]}{.meta.id}{"\\n"}{end}`.

The paths in braces are those of RFC 9535, where `$` (or `@` inside of range) may be left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jsonpath

_PIECE = re.compile(r"""\{((?:"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|[^{}"'])*)\}""")

Render = Callable[[Any], str]


class BadTemplate(ValueError):
    """A template makes no sense; str() says where."""


def template(text: str) -> Render:
    """A function from a JSON value to text. Raises BadTemplate."""
    if "{" not in text:
        text = "{" + text + "}"
    rest = _pieces(text)
    parts = list(_parts(rest, inside=False))
    return lambda value: "".join(part(value) for part in parts)


def values(path: str, value: Any) -> list[Any]:
    """Find the values at a path. Raises BadTemplate."""
    return _query(path)(value)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """`("text", …)` between braces and `("path", …)` inside of them."""
    at = 0
    for found in _PIECE.finditer(text):
        if found.start() > at:
            yield "text", _outside(text[at : found.start()])
        yield "path", found[1].strip()
        at = found.end()
    if text[at:]:
        yield "text", _outside(text[at:])


def _outside(text: str) -> str:
    if "{" in text or "}" in text:
        raise BadTemplate(f"{text!r}: a brace is not closed, or not opened")
    return text


def _parts(rest: Iterator[tuple[str, str]], *, inside: bool) -> Iterator[Render]:
    for kind, text in rest:
        if kind == "text":
            yield _constant(text)
        elif text.startswith(('"', "'")):
            yield _constant(_unquote_text(text))
        elif text.startswith("range "):
            yield _render_range(_query(text[6:].strip()), list(_parts(rest, inside=True)))
        elif text == "end":
            if inside:
                return
            raise BadTemplate("{end}: there is no {range …} before it")
        else:
            yield _render_query(_query(text))
    if inside:
        raise BadTemplate("{range …}: its {end} is missing")


def _constant(text: str) -> Render:
    return lambda value: text


def _render_range(query: Callable[[Any], list[Any]], body: Sequence[Render]) -> Render:
    return lambda value: "".join(part(item) for item in query(value) for part in body)


def _render_query(query: Callable[[Any], list[Any]]) -> Render:
    return lambda value: " ".join(_text(found) for found in query(value))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _unquote_text(text: str) -> str:
    try:
        return str(json.loads('"' + text[1:-1].replace('\\"', '"').replace('"', '\\"') + '"'))
    except json.JSONDecodeError:
        raise BadTemplate(f"{text}: expected quoted text") from None


def _query(path: str) -> Callable[[Any], list[Any]]:
    full = path if path.startswith("$") else "$" + path.removeprefix("@")
    if full[1:2] not in ("", ".", "["):
        full = "$." + full[1:]
    try:
        compiled = jsonpath.compile(full)
    except jsonpath.JSONPathError as error:
        raise BadTemplate(f"{path}: {str(error).splitlines()[0]}") from None
    return compiled.findall
