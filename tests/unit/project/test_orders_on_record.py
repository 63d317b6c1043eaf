"""Orders are refused at every controller while they cannot be recorded, except those that only stop work."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from cms.api.admin_api import CmsAdminApi
from cms.api.tasks_api import CmsApi
from nanny.api.nanny_api import NannyApi
from nannypb.v1 import service_pb2 as nanny_pb
from serving.calls.methods import Method, UnaryMethod
from serving.rights.rules import AuditLevel
from walle.server import methods as walle_methods
from wallepb.v1 import service_pb2 as walle_pb

ANY: Any = MagicMock()
METHODS: list[Method] = [
    *CmsApi(ANY).methods(),
    *CmsAdminApi(ANY).methods(),
    *NannyApi(ANY, ANY, ANY, ANY, ANY, ANY).methods(),
    *walle_methods(ANY),
]
READS = ("Get", "List", "Watch", "Why", "Plan")
REPORTS = ("ReportChecks", "TakeAlerts")


def name_of(method: Method) -> str:
    return method.path.rpartition("/")[2]


ORDERS = {name_of(one): one for one in METHODS if isinstance(one, UnaryMethod) and not name_of(one).startswith(READS)}


@pytest.mark.parametrize("name", sorted(ORDERS.keys() - set(REPORTS)))
def test_an_order_is_carried_out_only_if_it_can_be_recorded(name: str) -> None:
    assert ORDERS[name].rule.record is AuditLevel.ORDERS


@pytest.mark.parametrize("name", REPORTS)
def test_reports_are_accepted_even_if_they_cannot_be_recorded(name: str) -> None:
    """Otherwise a full disk of the audit log would hide what breaks."""
    assert ORDERS[name].rule.record is AuditLevel.DENIALS


@pytest.mark.parametrize(
    ("name", "request_", "only_stops"),
    [
        ("PauseActions", nanny_pb.PauseActionsRequest(), True),
        ("ResumeActions", nanny_pb.ResumeActionsRequest(), False),
        ("StopService", nanny_pb.StopServiceRequest(), False),  # it takes instances down
        ("SetControl", nanny_pb.SetControlRequest(order=nanny_pb.CONTROL_ORDER_FREEZE), True),
        ("SetControl", nanny_pb.SetControlRequest(order=nanny_pb.CONTROL_ORDER_UNFREEZE), False),
        ("SetControl", nanny_pb.SetControlRequest(order=nanny_pb.CONTROL_ORDER_OPEN_EPOCH), False),
        ("SwitchAutomation", walle_pb.SwitchAutomationRequest(on=False), True),
        ("SwitchAutomation", walle_pb.SwitchAutomationRequest(on=True), False),
        ("CancelOperation", walle_pb.CancelOperationRequest(), True),
        ("EndScenario", walle_pb.EndScenarioRequest(done=False), True),
        ("EndScenario", walle_pb.EndScenarioRequest(done=True), False),
        ("SteerScenario", walle_pb.SteerScenarioRequest(steering=walle_pb.STEERING_PAUSE), True),
        ("SteerScenario", walle_pb.SteerScenarioRequest(steering=walle_pb.STEERING_RETRY), False),
    ],
)
def test_orders_that_only_stop_work_are_carried_out_unrecorded(name: str, request_: Any, only_stops: bool) -> None:
    assert ORDERS[name].only_stops(request_) is only_stops
