"""An error of a location reaches the gateway's caller with code, reason and details."""

from __future__ import annotations

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from federated.errors import is_word, relayed_error
from hq import errors as hq_errors
from hqclient.errors import HqApiError, connection_closed, decode
from serving import error_statuses, errors

SAID = [
    errors.NotFound("there is none"),
    hq_errors.VersionConflict("a", 3, 7),
    hq_errors.AlreadyExists("a", 7),
    hq_errors.EpochChanged("old", "new"),
    errors.StoreFull("no room", 3.0),
    hq_errors.BehindVersion("not yet", 0.5),
    errors.OutcomeUnknown("who knows"),
    errors.PermissionDenied("no"),
    errors.TooLarge("too large"),
    errors.ServiceError("internal error"),
    hq_errors.WrongNode("a", "it lives elsewhere"),
    errors.InvalidRequest(errors.Violation("filter.cluster[0]", "no id"), errors.Violation("page_size", "negative")),
]


def over_the_wire(error: errors.ServiceError) -> HqApiError:
    """The error as a client sees it."""
    status = error_statuses.status_of(error)
    trailers = Metadata(*error_statuses.grpc_trailers(error, status))
    return decode(AioRpcError(error_statuses.grpc_code(error), Metadata(), trailers, status.message))


@pytest.mark.parametrize("said", SAID, ids=lambda error: error.reason)
def test_an_error_of_a_location_is_passed_on_whole(said: errors.ServiceError) -> None:
    told = over_the_wire(said)
    passed = over_the_wire(relayed_error(told, "east"))
    assert (passed.code, passed.reason, passed.retry_delay_s) == (told.code, told.reason, told.retry_delay_s)
    assert [v.field for v in passed.violations] == [v.field for v in told.violations]
    assert passed.metadata == {**told.metadata, "cluster": "east"}
    assert passed.outcome_unknown == told.outcome_unknown
    assert passed.nothing_stored == told.nothing_stored


def test_a_connection_that_broke_under_a_write_leaves_its_outcome_unknown() -> None:
    broken = HqApiError(grpc.StatusCode.UNAVAILABLE, "Socket closed")
    assert over_the_wire(relayed_error(broken, "east")).outcome_unknown
    never_sent = HqApiError(grpc.StatusCode.UNAVAILABLE, "refused", sent=False)
    assert over_the_wire(relayed_error(never_sent, "east")).nothing_stored


def test_why_a_location_took_no_write_is_said_without_addresses_of_replicas() -> None:
    no_connection = HqApiError(grpc.StatusCode.UNAVAILABLE, "failed to connect to ipv4:10.0.0.1:7071", sent=False)
    no_answer = HqApiError(grpc.StatusCode.DEADLINE_EXCEEDED, "Stream removed (Deadline Exceeded)")
    assert str(relayed_error(no_connection, "east")) == "east: no replica accepts connections"
    closed = connection_closed("10.0.0.1:7071")
    assert str(relayed_error(closed, "east")).startswith("east: the connection to a replica was closed;")
    assert str(relayed_error(no_answer, "east")).startswith(
        "east: no response before the deadline; it may or may not be stored"
    )


def test_only_an_answer_of_hq_about_the_request_counts_as_its_word() -> None:
    assert is_word(over_the_wire(errors.NotFound("none")))
    assert not is_word(over_the_wire(hq_errors.BehindVersion("not yet")))
    assert not is_word(HqApiError(grpc.StatusCode.NOT_FOUND, "a proxy's 404"))
