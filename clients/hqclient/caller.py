"""What the typed calls share: how a request is sent, and which versions the answers must contain."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TypeVar

from google.protobuf import duration_pb2, field_mask_pb2

from hqclient.calls import Calls, Method
from hqclient.errors import HqApiError
from hqclient.freshness import OwnWrites
from hqclient.retry import Safety

Req = TypeVar("Req")
Res = TypeVar("Res")


class Caller:
    """Base of the classes with typed calls."""

    def __init__(self, calls: Calls, own_writes: OwnWrites | None, rng: random.Random, timeout_s: float) -> None:
        self._calls = calls
        self._own_writes = own_writes
        self._rng = rng
        self._timeout_s = timeout_s

    async def call(
        self,
        method: Method[Req, Res],
        request: Req,
        *,
        safety: Safety = Safety.UNLESS_STORED,
        timeout_s: float | None = None,
    ) -> Res:
        """Send any request as it stands, e.g. `call(lambda hq: hq.instances.GetInstance, request)`.

        Args:
            safety: whether it may be repeated when the outcome of a try is unknown.
            timeout_s: for the whole call, retries included; None: the client's default.

        Raises:
            HqApiError: it failed for good, or the time is up.
        """
        try:
            return await self._calls.run(method, request, safety, self._timeout_s if timeout_s is None else timeout_s)
        except HqApiError as error:
            if error.reason == "EPOCH_CHANGED" and self._own_writes is not None:
                self._own_writes.forget()
            raise

    def _wrote(self, version: int, cluster: str = "") -> None:
        if self._own_writes is not None:
            self._own_writes.wrote(version, cluster)


def mask(paths: Iterable[str]) -> field_mask_pb2.FieldMask | None:
    """A field mask; None if there are no paths."""
    listed = list(paths)
    return field_mask_pb2.FieldMask(paths=listed) if listed else None


def duration(seconds: float | None) -> duration_pb2.Duration | None:
    """A protobuf duration; None stays None: the server's default."""
    if seconds is None:
        return None
    nanos = round(seconds * 1e9)
    return duration_pb2.Duration(seconds=nanos // 1_000_000_000, nanos=nanos % 1_000_000_000)


def repeatable_if(condition: bool) -> Safety:
    return Safety.REPEATABLE if condition else Safety.UNLESS_STORED
