"""Templates: everything in them is escaped; the parts that live pages update are marked by `live` blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from console.site.visits import TemplatePage
from console.views import words
from console.views.urls import url

_TEMPLATES = Path(__file__).resolve().parents[1] / "templates"


class Templates:
    """Renders pages. `shared` is known to every template."""

    def __init__(self, shared: Mapping[str, Any]) -> None:
        self._made = Environment(
            loader=FileSystemLoader(_TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._made.filters.update(words.FILTERS)
        self._made.globals.update(shared, url=url)

    def render(self, page: TemplatePage, about: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        """The page, and its live fragments by name."""
        fragments: dict[str, str] = {}
        given = {
            **about,
            **page.shown,
            "title": page.title,
            "live": partial(_live, fragments),
            "ago": partial(words.when, now_s=about["now_s"]),
        }
        return self._made.get_template(page.template).render(given), fragments


def _live(fragments: dict[str, str], name: str, caller: Callable[[], Markup]) -> Markup:
    inner = caller()  # a template's own output: what it shows is escaped already
    mark = hashlib.blake2b(inner.encode(), digest_size=8).hexdigest()
    whole = Markup('<div class="live" data-live="{}" data-mark="{}">{}</div>').format(name, mark, inner)
    fragments[name] = str(whole)
    return whole
