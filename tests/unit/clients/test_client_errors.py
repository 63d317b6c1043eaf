"""How a client turns a gRPC status into an error."""

from __future__ import annotations

import grpc
import pytest
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped,unused-ignore]
from grpc.aio import AioRpcError, Metadata

from hqclient.errors import Violation, decode, decode_status

Code = grpc.StatusCode


def failed(code: Code, text: str, *details: Message, raw: bytes | None = None) -> AioRpcError:
    status = status_pb2.Status(code=code.value[0], message=text)
    for detail in details:
        packed = any_pb2.Any()
        packed.Pack(detail)
        status.details.append(packed)
    trailers = Metadata(("grpc-status-details-bin", status.SerializeToString() if raw is None else raw))
    return AioRpcError(code, Metadata(), trailers, text, None)


def test_a_conflict_tells_the_current_version() -> None:
    info = error_details_pb2.ErrorInfo(reason="VERSION_CONFLICT", domain="hq", metadata={"current_version": "42"})
    error = decode(failed(Code.ABORTED, "read it again", info), "hq-1:7071")
    assert (error.code, error.reason, error.current_version) == (Code.ABORTED, "VERSION_CONFLICT", 42)
    assert str(error) == "read it again"
    assert error.endpoint == "hq-1:7071"
    assert error.from_hq
    assert not error.outcome_unknown


def test_a_faulty_request_names_the_fields() -> None:
    bad = error_details_pb2.BadRequest()
    bad.field_violations.add(field="instance.meta.id", description="is empty")
    error = decode(failed(Code.INVALID_ARGUMENT, "…", bad))
    assert error.violations == (Violation("instance.meta.id", "is empty"),)


def test_a_failed_precondition_names_its_subject() -> None:
    failure = error_details_pb2.PreconditionFailure()
    failure.violations.add(type="FENCED", subject="web-1/v2", description="another reporter took over")
    error = decode(failed(Code.FAILED_PRECONDITION, "…", failure))
    assert error.violations == (Violation("web-1/v2", "another reporter took over"),)


def test_a_retry_delay_from_hq_means_that_nothing_was_stored() -> None:
    retry = error_details_pb2.RetryInfo()
    retry.retry_delay.FromMilliseconds(1500)
    info = error_details_pb2.ErrorInfo(reason="STORE_UNAVAILABLE", domain="hq")
    error = decode(failed(Code.UNAVAILABLE, "…", info, retry))
    assert error.retry_delay_s == 1.5
    assert error.nothing_stored
    assert not error.outcome_unknown


def test_an_error_from_a_proxy_does_not_count_as_one_from_hq() -> None:
    retry = error_details_pb2.RetryInfo()
    info = error_details_pb2.ErrorInfo(reason="OVERLOADED", domain="some.proxy")
    error = decode(failed(Code.UNAVAILABLE, "…", info, retry))
    assert not error.from_hq
    assert not error.nothing_stored
    assert error.outcome_unknown


def test_an_epoch_change_names_the_current_epoch() -> None:
    info = error_details_pb2.ErrorInfo(reason="EPOCH_CHANGED", domain="hq", metadata={"current_epoch": "e2"})
    assert decode(failed(Code.FAILED_PRECONDITION, "…", info)).current_epoch == "e2"


def test_broken_details_do_not_hide_the_status() -> None:
    error = decode(failed(Code.NOT_FOUND, "there is no web-9", raw=b"\xff\xff\xff"))
    assert (error.code, str(error), error.reason) == (Code.NOT_FOUND, "there is no web-9", "")


def test_a_connection_that_ended_leaves_the_outcome_of_a_write_unknown() -> None:
    error = decode(AioRpcError(Code.UNAVAILABLE, Metadata(), Metadata(), "Socket closed", None))
    assert error.outcome_unknown
    assert not error.nothing_stored


@pytest.mark.parametrize(
    ("details", "words"),
    [
        (
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Connection refused",
            "cannot connect to 127.0.0.1:1: Connection refused",
        ),
        (
            "errors resolving nobody.invalid:1: [field:hostname lookup error:address lookup failed: Not found]",
            "cannot connect to nobody.invalid:1: address lookup failed: Not found",
        ),
        (
            "DNS resolution failed for nobody.invalid:1: C-ares status is not ARES_SUCCESS qtype=A: Not found",
            "cannot connect to nobody.invalid:1: Not found",
        ),
    ],
)
def test_a_call_that_found_no_connection_was_never_sent(details: str, words: str) -> None:
    error = decode(AioRpcError(Code.UNAVAILABLE, Metadata(), Metadata(), details, None))
    assert str(error) == words
    assert error.nothing_stored
    assert not error.outcome_unknown


def test_a_status_read_without_grpcs_library_is_the_same_error() -> None:
    info = error_details_pb2.ErrorInfo(reason="FENCED", domain="hq")
    failure = failed(Code.ABORTED, "another agent", info)
    raw = dict(failure.trailing_metadata())["grpc-status-details-bin"]
    assert isinstance(raw, bytes)
    assert vars(decode_status(10, "another agent", raw, "hq-1:7071")) == vars(decode(failure, "hq-1:7071"))


def test_a_status_of_an_unknown_number_is_unknown() -> None:
    assert decode_status(99, "", b"").code is Code.UNKNOWN


def test_an_unsent_call_stored_nothing_unless_hq_said_otherwise() -> None:
    assert decode_status(14, "refused", b"", sent=False).nothing_stored
    status = status_pb2.Status(code=14)
    packed = any_pb2.Any()
    packed.Pack(error_details_pb2.ErrorInfo(reason="OUTCOME_UNKNOWN", domain="hq"))
    status.details.append(packed)
    assert decode_status(14, "who knows", status.SerializeToString(), sent=False).outcome_unknown
