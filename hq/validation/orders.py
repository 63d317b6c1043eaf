"""What operators order."""

from google.protobuf.duration_pb2 import Duration

from hq.validation.durations import check_duration
from hq.validation.faults import require
from hq.validation.ids import check_id, check_words
from hqpb.v1.admin_pb2 import ConfirmEpochRequest, ForceGuardRequest, ReleaseGuardRequest, SuspendNodeRequest
from serving.errors import Violation

MAX_GUARD_ORDER_S = 86_400
MAX_SUSPENSION_S = 7 * 86_400
MAX_REASON_BYTES = 1024
MAX_BY_BYTES = 253


def check_guard_order(order: ReleaseGuardRequest | ForceGuardRequest) -> None:
    """For at most 24 h; an absent duration (or 0 s) stands for the default.

    Raises:
        InvalidRequest: with all violations by path.
    """
    require(
        check_duration(order.duration, "duration", MAX_GUARD_ORDER_S),
        check_words(order.reason, "reason", MAX_REASON_BYTES),
        check_words(order.by, "by", MAX_BY_BYTES),
    )


def check_confirmation(order: ConfirmEpochRequest) -> None:
    """Of an epoch that is named.

    Raises:
        InvalidRequest: with all violations by path.
    """
    require(
        check_words(order.epoch, "epoch", MAX_BY_BYTES),
        check_words(order.reason, "reason", MAX_REASON_BYTES),
        check_words(order.by, "by", MAX_BY_BYTES),
    )


def check_suspension(order: SuspendNodeRequest) -> None:
    """Of one node, with an end, at most 7 days ahead.

    Raises:
        InvalidRequest: with all violations by path.
    """
    require(
        check_id(order.node_name, "node_name"),
        check_end(order.duration) or check_duration(order.duration, "duration", MAX_SUSPENSION_S),
        check_words(order.reason, "reason", MAX_REASON_BYTES),
        check_words(order.by, "by", MAX_BY_BYTES),
    )


def check_end(duration: Duration) -> Violation | None:
    if duration.seconds or duration.nanos:
        return None
    return Violation("duration", f"must be set: use 1 s to {MAX_SUSPENSION_S} s")
