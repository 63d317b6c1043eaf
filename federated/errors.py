"""Errors specific to a gateway, and how it relays a location's errors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Final, get_args

import grpc

from hqapi.requests import CLUSTER_HEADER
from hqclient.errors import HqApiError
from serving.errors import (
    Code,
    FailedPrecondition,
    InvalidRequest,
    OutcomeUnknown,
    Retry,
    ServiceError,
    StartOver,
    TooLarge,
    Violation,
)

NAME_IT: Final = f"name the location with the header {CLUSTER_HEADER}, or in meta.cluster where there is one"

_CODES: Final = frozenset(get_args(Code))
_DENIED: Final = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"})
_SAID: Final = frozenset({"INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND", "OUT_OF_RANGE"}) | _DENIED
NOT_LET_IN: Final = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})


class NoAnswer(Exception):
    """A location has no answer to this call; str() says why."""


class LocationsSilent(Retry):
    """Too few locations answer. Nothing was stored."""

    reason = "LOCATIONS_UNAVAILABLE"

    def __init__(self, silent: Mapping[str, NoAnswer], instead_of: str = "") -> None:
        said = "; ".join(f"{name}: {silence}" for name, silence in sorted(silent.items()))
        super().__init__(f"{instead_of} ({said})" if instead_of else f"locations do not respond: {said}")
        self._names = sorted(silent)

    @property
    def metadata(self) -> dict[str, str]:
        return {"locations": ",".join(self._names)}


class Ambiguous(ServiceError):
    """Several locations have an instance of this id, and the caller named none."""

    code: ClassVar[Code] = "FAILED_PRECONDITION"
    reason = "AMBIGUOUS"

    def __init__(self, instance_id: str, owners: Iterable[str]) -> None:
        self._owners = sorted(owners)
        super().__init__(f"instance {instance_id} exists in {' and in '.join(self._owners)}: {NAME_IT}")

    @property
    def metadata(self) -> dict[str, str]:
        return {"locations": ",".join(self._owners)}


class AskLocation(ServiceError):
    """The call must go to the location. Agents never talk to a gateway: its failure must not look like theirs."""

    code: ClassVar[Code] = "FAILED_PRECONDITION"
    reason = "ASK_LOCATION"

    def __init__(self, call: str, where: Mapping[str, Iterable[str]]) -> None:
        self._where = {name: ",".join(addresses) for name, addresses in sorted(where.items())}
        told = "; ".join(f"{name} at {addresses}" for name, addresses in self._where.items())
        super().__init__(f"a federation gateway does not serve {call}: call the location itself, {told}")

    @property
    def metadata(self) -> dict[str, str]:
        only = next(iter(self._where.items())) if len(self._where) == 1 else ("", "")
        return {"cluster": only[0], "replicas": only[1]} if only[0] else {"locations": ",".join(self._where)}


def is_word(error: HqApiError) -> bool:
    """Whether the location rejected the request as such; it is able to answer others."""
    return is_too_large(error) or (error.from_hq and error.code.name in _SAID)


def is_too_large(error: HqApiError) -> bool:
    """Whether gRPC refused the request for its size before the location saw it: the location is healthy."""
    return not error.from_hq and error.code is grpc.StatusCode.RESOURCE_EXHAUSTED


def words_of(error: HqApiError, in_time: str) -> str:
    """Why a location has no answer in time."""
    if error.sent and error.code is grpc.StatusCode.DEADLINE_EXCEEDED and not error.from_hq:
        return f"no response {in_time}"
    return words_for_callers(error)


def words_for_callers(error: HqApiError) -> str:
    """A location's error without the addresses of its replicas, which must not be shown to callers."""
    if not error.sent:
        return "no replica accepts connections"
    return error.message.replace(error.endpoint, "a replica") if error.endpoint and not error.from_hq else error.message


def relayed_error(error: HqApiError, location: str) -> ServiceError:
    """A location's error for the gateway's own caller: same code, reason and details, plus the location."""
    message = f"{location}: {words_of(error, 'before the deadline')}"
    unsure = "; it may or may not be stored: read to find out"
    if error.earlier_try_unknown:  # the last error comes from a replica that knows nothing of the earlier try
        return OutcomeUnknown(message + unsure)
    if is_too_large(error):
        return TooLarge(f"{message}: send or request less", limit="")
    if not error.from_hq:
        return OutcomeUnknown(message + unsure) if error.outcome_unknown else Retry(message)
    code = error.code.name if error.code.name in _CODES else "INTERNAL"
    base: type[ServiceError] = ServiceError
    arguments: tuple[Any, ...] = (message,)
    if error.retry_delay_s is not None:
        base, arguments = Retry, (message, error.retry_delay_s)
    elif error.code is grpc.StatusCode.INVALID_ARGUMENT:
        base, arguments = InvalidRequest, _violations(error)
    elif error.code is grpc.StatusCode.FAILED_PRECONDITION and error.violations:
        subject = error.violations[0].field
        base, arguments = (FailedPrecondition, (message, subject)) if subject else (StartOver, (message,))
    made = _kind(base.__name__, code, error.reason or base.reason)(*arguments)
    made.__dict__["_relayed"] = {**error.metadata, "cluster": location}
    return made


def _violations(error: HqApiError) -> tuple[Violation, ...]:
    told = tuple(Violation(v.field, v.description) for v in error.violations)
    return told or (Violation("", error.message),)


_BASES: Final = {base.__name__: base for base in (ServiceError, Retry, InvalidRequest, FailedPrecondition, StartOver)}


@lru_cache(maxsize=256)
def _kind(base: str, code: str, reason: str) -> type[ServiceError]:
    """The error tree has code and reason on classes: make one more leaf for a location's error."""
    told = property(lambda self: self.__dict__.get("_relayed", {}))
    return type(f"Relayed{base}", (_BASES[base],), {"code": code, "reason": reason, "metadata": told})


def raise_refusal(refused: Mapping[str, HqApiError]) -> None:
    """Relay a location's refusal of the request, if there is one."""
    for name, error in refused.items():
        raise relayed_error(error, name)
