"""Which traces of callers are passed on."""

from __future__ import annotations

import pytest

from serving.calls import current
from serving.calls.methods import Call

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class _Traced(Call):
    """A call with its request ID as the trace context."""

    def header(self, name: str) -> str:
        return self.request_id if name == "traceparent" else ""


@pytest.mark.parametrize(
    ("sent", "told"), [(TRACE, TRACE), (f"{TRACE}-new", f"{TRACE}-new"), (f"{TRACE}-é", ""), (f"{TRACE}-\t", "")]
)
def test_a_trace_that_does_not_fit_into_metadata_is_not_passed_on(sent: str, told: str) -> None:
    assert dict(current.forwarded_metadata(_Traced(request_id=sent))).get("traceparent", "") == told
