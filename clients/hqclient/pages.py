"""Lists of controllers, which come in pages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import grpc

from hqclient.errors import HqApiError


async def ask_pages(ask: Callable[[Any], Awaitable[Any]], request: Any) -> Any:
    """The answers to all pages of a list as one message; raises what `ask` raises. `request`: for the first page.

    Raises HqApiError: a page names itself as the next one, so the list would never end.
    """
    whole = await ask(request)
    token = whole.next_page_token
    while token:
        request.page_token = token
        answer = await ask(request)
        if answer.next_page_token == token:
            raise HqApiError(grpc.StatusCode.INTERNAL, f"the list does not end: the page after {token!r} is itself")
        whole.MergeFrom(answer)
        token = answer.next_page_token
    whole.ClearField("next_page_token")
    return whole
