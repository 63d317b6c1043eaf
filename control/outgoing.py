"""HTTP to other systems: bounded in time and size, no redirects, no proxies, each destination with its own CA."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from ssl import SSLContext
from typing import Any, Final

import httpx

TIMEOUT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 1 << 20
UNSENDABLE: Final = "the request cannot be sent, as its credential is no value of a header"


class OutgoingCallFailed(Exception):
    """No answer came, or one that is not accepted. Whether the call took effect is unknown."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """An answer, whole."""

    status: int
    content: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def json(self) -> Any:
        """The content, parsed; None if there is none or it is not JSON."""
        try:
            return json.loads(self.content) if self.content else None
        except (ValueError, RecursionError):
            return None


class OutgoingHttp:
    """Sends requests. The caller must choose destinations that the configuration lists."""

    def __init__(self, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """`transport`: instead of connections, for tests."""
        self._transport = transport
        self._clients: dict[SSLContext | None, httpx.AsyncClient] = {}

    async def send(
        self,
        method: str,
        url: str,
        *,
        body: object = None,
        form: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        tls: SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
        extensions: dict[str, Any] | None = None,
    ) -> HttpReply:
        """The whole call takes `timeout_s` at most, however slowly its bytes arrive. Raises OutgoingCallFailed."""
        try:
            async with asyncio.timeout(timeout_s):
                # Not compressed: what is small on its way must not become large here.
                sent = {"accept-encoding": "identity", **(headers or {})}
                request = self._client(tls).build_request(
                    method, url, json=body, data=form, params=query, headers=sent, extensions=extensions
                )
                return await self._exchange(request, tls)
        except TimeoutError:
            raise OutgoingCallFailed(f"no answer within {timeout_s:g} s") from None
        except (httpx.LocalProtocolError, UnicodeEncodeError):
            # The error's text has the header's value, and this message is shown to many.
            raise OutgoingCallFailed(f"{UNSENDABLE}: look for line breaks and control characters in its file") from None
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise OutgoingCallFailed(f"{type(error).__name__}: {error}".rstrip(": ")) from error

    async def aclose(self) -> None:
        for client in self._clients.values():
            await client.aclose()

    async def _exchange(self, request: httpx.Request, tls: SSLContext | None) -> HttpReply:
        response = await self._client(tls).send(request, stream=True)
        content = bytearray()
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise ValueError("the answer is compressed, which was not asked for")
            async for part in response.aiter_bytes():
                content += part
                if len(content) > MAX_ANSWER_BYTES:
                    raise ValueError(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
        finally:
            await response.aclose()
        return HttpReply(response.status_code, bytes(content))

    def _client(self, tls: SSLContext | None) -> httpx.AsyncClient:
        if tls not in self._clients:
            # The whole call has a bound: its caller's.
            self._clients[tls] = httpx.AsyncClient(  # nosec B113
                transport=self._transport,
                verify=tls if tls is not None else True,
                follow_redirects=False,
                trust_env=False,
                timeout=None,
            )
        return self._clients[tls]
