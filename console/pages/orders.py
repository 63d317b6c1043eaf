"""The common part of all orders: author, reason, duration, and the message on the next page."""

from __future__ import annotations

import re
from typing import Final

from console.backends.asking import Trouble
from console.site.sealing import subject
from console.site.visits import BadPageRequest, Redirect, Visit
from nannypb.v1 import service_pb2 as pb

_MOST_HOURS: Final = 168
_REASON_CHARS: Final = 500


def author(visit: Visit) -> str:
    """Who it is, for servers without authentication; the others take the name from the token."""
    return (subject(visit.token) or "console")[:200]


def authorship(visit: Visit) -> pb.Authorship:
    """Who gives an order to Nanny, and why. With tokens, Nanny takes the name from the token."""
    return pb.Authorship(
        author=author(visit), comment=visit.form.get("comment", "")[:2_000], ticket=visit.form.get("ticket", "")[:200]
    )


def reason(visit: Visit) -> str:
    """Raises BadPageRequest: there is none."""
    if not (given := visit.form.get("reason", "")):
        raise BadPageRequest(400, "reason: say why, it is kept with the order")
    return given[:_REASON_CHARS]


def hours(visit: Visit) -> int:
    """Raises BadPageRequest: it is not a number from 1 to 168."""
    given = visit.form.get("hours", "")
    if not re.fullmatch(r"\d{1,3}", given) or not 1 <= int(given) <= _MOST_HOURS:
        raise BadPageRequest(400, f"hours: write a whole number from 1 to {_MOST_HOURS}")
    return int(given)


def result_redirect(to: str, failed: Trouble | None, done: str) -> Redirect:
    """Redirect to the page that shows the result."""
    return Redirect(to, done=done) if failed is None else Redirect(to, failed=f"Nothing was done: {failed.text}")
