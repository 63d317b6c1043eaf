"""Errors on the wire, as far as no socket is needed."""

from __future__ import annotations

import pytest

from hq.errors import VersionConflict
from hqapi.requests import item_error
from serving import error_statuses
from serving.calls.methods import Call
from serving.errors import InvalidRequest, NotFound, Retry, ServiceError, Violation, invalid

SOFT_LIMIT_OF_TRAILERS_BYTES = 8 * 1024


def test_the_status_of_many_long_faults_fits_into_trailers() -> None:
    error = InvalidRequest(*(Violation(f"instance[{n}].meta.id", "ü" * 500) for n in range(1_000)))
    status = error_statuses.status_of(error)
    as_text_bytes = 3 * len(status.message.encode())  # percent-encoded
    as_base64_bytes = status.ByteSize() * 4 / 3
    assert as_text_bytes + as_base64_bytes < SOFT_LIMIT_OF_TRAILERS_BYTES


def test_one_endless_fault_fits_into_trailers() -> None:
    status = error_statuses.status_of(invalid("f" * 100_000, "x" * 100_000))
    assert len(status.message) * 3 + status.ByteSize() * 4 / 3 < SOFT_LIMIT_OF_TRAILERS_BYTES


def test_faults_that_were_left_out_are_counted() -> None:
    error = InvalidRequest(*(Violation(f"f{n}", "x" * 100) for n in range(100)))
    bad_request = error_statuses.connect_error(error)["details"][1]["debug"]
    told = bad_request["fieldViolations"]
    assert told[-1] == {"description": f"and {100 - len(told) + 1} more"}


def test_a_message_is_cut_between_characters() -> None:
    message = error_statuses.status_of(NotFound("ü" * 5_000)).message
    assert message.endswith("ü…")
    assert len(message.encode()) <= 1_024


def test_a_message_with_half_a_surrogate_can_be_sent() -> None:
    assert error_statuses.status_of(NotFound("no \ud800")).message == "no ?"


@pytest.mark.parametrize(("delay_s", "seconds"), [(0.0, 1), (0.2, 1), (1.0, 1), (1.1, 2), (30.0, 30)])
def test_retry_after_is_never_too_soon(delay_s: float, seconds: int) -> None:
    assert error_statuses.retry_after_s(Retry("later", delay_s)) == seconds


def test_a_conflict_has_no_retry_delay() -> None:
    assert error_statuses.retry_after_s(VersionConflict("web-1", 1, 2)) is None


def test_an_error_of_a_batch_item_is_that_of_a_single_call() -> None:
    conflict = item_error(VersionConflict("web-1", 3, 7))
    assert (conflict.code, conflict.reason, conflict.current_version) == (10, "VERSION_CONFLICT", 7)
    fault = item_error(invalid("meta.id", "must not be empty"))
    assert (fault.code, fault.field, fault.message) == (3, "meta.id", "meta.id: must not be empty")


def test_an_interrupt_is_not_turned_into_an_answer() -> None:
    with pytest.raises(KeyboardInterrupt):
        error_statuses.as_service_error(KeyboardInterrupt(), Call())


def test_the_end_of_a_stream_is_json() -> None:
    assert error_statuses.end_of_stream(None) == b"{}"
    assert error_statuses.end_of_stream(ServiceError("broken")).startswith(
        b'{"error":{"code":"internal","message":"broken","details":['
    )
