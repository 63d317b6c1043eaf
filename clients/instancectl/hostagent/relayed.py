"""What HQ said, or that it said nothing, as errors for the supervisor whose call it was."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, get_args

import grpc
from google.protobuf.message import DecodeError
from google.rpc import status_pb2  # type: ignore[import-untyped,unused-ignore]

from hqclient.errors import DETAILS_KEY, UNSURE_REASONS, HqApiError, decode_status
from hqpb.v1 import service_pb2 as pb
from serving.errors import Code, InvalidRequest, OutcomeUnknown, Retry, ServiceError, Violation
from serving.transport.client import CallFailed

_CODES: Final = frozenset(get_args(Code))
_NUMBERS: Final = {code.value[0]: code.name for code in grpc.StatusCode}
_NOT_NOW: Final = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")


class Failed(Exception):
    """A call to HQ failed; one for all whose messages were in it.

    Attributes:
        error: what it came to, decoded.
    """

    def __init__(self, failure: CallFailed, address: str) -> None:
        self._details = failure.binary(DETAILS_KEY)
        self.error: HqApiError = decode_status(
            failure.code, failure.message, self._details, address, sent=not failure.is_unprocessed
        )
        super().__init__(str(self.error))

    def told(self) -> ServiceError:
        """For one caller: HQ's own words with all their details; without any, whether it may have been stored."""
        error = self.error
        if error.from_hq or not (error.outcome_unknown or error.nothing_stored):
            made = _kind("ServiceError", _code(error.code.name), error.reason or "RELAYED")(error.message)
            made.plain_details = _unpacked(self._details)
            return made
        if error.nothing_stored:
            return Retry(f"HQ cannot be reached: {error.message}")
        return OutcomeUnknown(f"HQ did not respond: {error.message}; it may or may not be stored")


def of_item(item: pb.ItemError, path: str) -> ServiceError:
    """The error of one item that had a batch for itself, as far as its caller knows; `path`: `report[3]`."""
    code, reason, field = _code(_NUMBERS.get(item.code, "")), item.reason or "RELAYED", item.field
    if code == "INVALID_ARGUMENT":
        own = field.removeprefix(path).removeprefix(".")
        return InvalidRequest(Violation(own, item.message.replace(f"{path}.", "").removeprefix(f"{own}: ")))
    if code in _NOT_NOW and reason not in UNSURE_REASONS:
        return _kind("Retry", code, reason)(item.message)
    return _kind("ServiceError", code, reason)(item.message)


def _code(name: str) -> str:
    return name if name in _CODES else "INTERNAL"


@lru_cache(maxsize=256)
def _kind(base: str, code: str, reason: str) -> type[ServiceError]:
    """The error tree has code and reason on classes: one more leaf for what HQ said."""
    bases: dict[str, type[ServiceError]] = {"ServiceError": ServiceError, "Retry": Retry}
    return type(f"Relayed{base}", (bases[base],), {"code": code, "reason": reason})


def _unpacked(details: bytes) -> list[Any]:
    try:
        return list(status_pb2.Status.FromString(details).details)
    except DecodeError:
        return []
