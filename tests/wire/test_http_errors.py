"""Every error over HTTP: Connect's JSON, its status, its details."""

from __future__ import annotations

import base64
import logging
from typing import Any

import pytest
from google.protobuf import json_format
from google.rpc import error_details_pb2  # type: ignore[import-untyped]

from serving.errors import FailedPrecondition, InvalidRequest, Retry, ServiceError
from tests.wire.fake_table import FAILURES
from tests.wire.raw_http import RawHttp

STATUSES = {
    "Retry": 503,
    "StoreUnavailable": 503,
    "StoreFull": 429,
    "StoreLimit": 429,
    "LivenessUnavailable": 400,
    "EpochDoubted": 503,
    "NotLoaded": 503,
    "BehindVersion": 503,
    "Overloaded": 429,
    "ShuttingDown": 503,
    "AuditUnavailable": 503,
    "FailedPrecondition": 400,
    "StartOver": 400,
    "EpochChanged": 400,
    "VersionConflict": 409,
    "AlreadyExists": 409,
    "InvalidRequest": 400,
    "TooLarge": 413,
    "UnknownMethod": 404,
    "Stop": 400,
    "WrongNode": 400,
    "WrongService": 400,
    "WrongUid": 400,
    "UnknownRevision": 400,
    "Fenced": 400,
    "NotBegun": 400,
    "OutdatedReport": 400,
    "Unauthenticated": 401,
    "PermissionDenied": 403,
    "NotFound": 404,
    "OutOfReach": 404,
    "OutcomeUnknown": 504,
    "DeadlineExceeded": 504,
    "ServiceError": 500,
}


def details_of(error: dict[str, Any]) -> dict[str, Any]:
    """Details by their short name, decoded from their base64; the readable copy is compared on the way."""
    found = {}
    for detail in error["details"]:
        name = detail["type"].removeprefix("google.rpc.")
        value = detail["value"]
        message = getattr(error_details_pb2, name).FromString(base64.b64decode(value + "=" * (-len(value) % 4)))
        assert json_format.MessageToDict(message) == detail["debug"]
        found[name] = message
    return found


async def test_each_error_has_its_status_code_and_reason(http: RawHttp) -> None:
    for name, expected in FAILURES.items():
        answer = await http.post(b'{"id":"fail:%s"}' % name.encode())
        error = answer.json()
        info = details_of(error)["ErrorInfo"]
        assert answer.status == STATUSES[name]
        assert answer.headers["content-type"] == "application/json"
        assert error["code"] == expected.code.lower()
        assert error["message"] == str(expected)
        assert (info.reason, info.domain, dict(info.metadata)) == (expected.reason, "hq", expected.metadata)


async def test_each_error_says_what_to_do_in_its_details(http: RawHttp) -> None:
    for name, expected in FAILURES.items():
        answer = await http.post(b'{"id":"fail:%s"}' % name.encode())
        details = details_of(answer.json())
        wanted = {
            "RetryInfo": isinstance(expected, Retry),
            "BadRequest": isinstance(expected, InvalidRequest),
            "PreconditionFailure": isinstance(expected, FailedPrecondition),
        }
        assert {detail: detail in details for detail in wanted} == wanted
        assert ("retry-after" in answer.headers) == isinstance(expected, Retry)


async def test_a_delay_is_told_exactly_and_in_whole_seconds(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"fail:Retry"}')
    assert details_of(answer.json())["RetryInfo"].retry_delay.ToMilliseconds() == 2_500
    assert answer.headers["retry-after"] == "3"


async def test_a_fault_of_a_field_is_told_by_its_path(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"fail:InvalidRequest"}')
    (violation,) = details_of(answer.json())["BadRequest"].field_violations
    assert (violation.field, violation.description) == ("instance.meta.id", "must not be empty")


async def test_an_agent_is_told_what_to_stop(http: RawHttp) -> None:
    answer = await http.post(b'{"id":"fail:Fenced"}')
    (violation,) = details_of(answer.json())["PreconditionFailure"].violations
    assert (violation.type, violation.subject) == ("FENCED", "web-1/r1")


async def test_an_unexpected_error_is_logged_and_not_told(http: RawHttp, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "serving.error_statuses"):
        answer = await http.post(b'{"id":"boom"}', x_request_id="abc-3")
    assert (answer.status, answer.json()["code"]) == (500, "internal")
    assert b"secret" not in answer.body
    assert "abc-3" in answer.json()["message"]
    assert "abc-3" in caplog.text
    assert "a secret of the machine room" in caplog.text


@pytest.mark.parametrize("accident", ["timeout", "inner-cancel"])
async def test_a_call_cut_off_inside_has_an_unknown_outcome(http: RawHttp, accident: str) -> None:
    answer = await http.post(b'{"id":"%s"}' % accident.encode())
    assert answer.status == 504
    assert details_of(answer.json())["ErrorInfo"].reason == "OUTCOME_UNKNOWN"


def test_no_error_of_the_tree_is_missing_here() -> None:
    def is_of_the_tree(kind: type[ServiceError]) -> bool:
        return kind.__module__ in ("serving.errors", "hq.errors")

    def below(kind: type[ServiceError]) -> set[str]:
        return {kind.__name__}.union(*(below(k) for k in kind.__subclasses__() if is_of_the_tree(k)))

    assert below(ServiceError) == set(FAILURES) == set(STATUSES)
