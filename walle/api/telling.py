"""Checks come in: reports and alerts. Only what changes something becomes an event."""

from __future__ import annotations

from collections.abc import Iterable

from serving.calls.methods import Answer, Call, Method, Service
from serving.encoding.jsonio import MessageAnswer
from serving.errors import InvalidRequest
from walle.api.checking import check_checks
from walle.api.rights import TELL, who
from walle.checks.alerts import checks_of
from walle.process.automaton import Automaton
from wallepb.v1 import service_pb2 as pb


class Telling:
    """The calls of check sources."""

    def __init__(self, automaton: Automaton) -> None:
        self._walle = automaton

    def methods(self, service: Service) -> list[Method]:
        return [
            service.unary(pb.ReportChecksRequest, self._report, TELL),
            service.unary(pb.TakeAlertsRequest, self._alerts, TELL),
        ]

    async def _report(self, request: pb.ReportChecksRequest, call: Call) -> Answer:
        for report in request.hosts:
            check_checks(report)
        unknown = await self._walle.tell(request.hosts, who(call))
        return MessageAnswer(pb.ReportChecksResponse(unknown=unknown))

    async def _alerts(self, request: pb.TakeAlertsRequest, call: Call) -> Answer:
        """What cannot be understood is answered, not refused: Alertmanager would repeat the whole group for ever."""
        reports, unknown = checks_of(request.alerts)
        unknown += await self._walle.tell(list(_valid(reports, unknown)), who(call))
        return MessageAnswer(pb.TakeAlertsResponse(unknown=unknown))


def _valid(reports: Iterable[pb.HostChecks], unknown: list[str]) -> Iterable[pb.HostChecks]:
    for report in reports:
        try:
            check_checks(report)
        except InvalidRequest as error:
            unknown.append(str(error))
        else:
            yield report
