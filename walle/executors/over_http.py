"""Work that is ordered over HTTP: from management controllers by Redfish, and from any service by a webhook.

A reset that was sent is recognised by what the machine shows: the time of its last reset, where the controller tells
it, else the boot id that its agent reports. So a process that died after the call does not send a second one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from control.outgoing import TIMEOUT_S, HttpReply, OutgoingCallFailed
from walle.executors.port import ExecutorFailure, PollResult, Unfit, WorkProgress
from walle.executors.values import fill, listed_bmc, value_of
from walle.outgoing.calls import OutgoingCalls
from walle.outgoing.destinations import NOWHERE, AllowedEndpoint, BadAddress, Destinations, not_listed, parse_url
from walle.tables import NAMES
from wallepb.v1.host_pb2 import OPERATION_KIND_POWER_OFF, Host, Intent

_SYSTEMS: Final = "/redfish/v1/Systems"
_PATH: Final = re.compile(r"/[A-Za-z0-9._~:@!$&'()*+,;=%/-]*")
_RESTARTS: Final = ("ForceRestart", "GracefulRestart", "PowerCycle")


@dataclass(frozen=True, slots=True)
class RedfishConfig:
    """`url` and `system` may hold {bmc}, {host} and {inventory}; `system` empty: its only one.

    `Destinations` says where it is called, and with which account.

    A reset whose answer was lost is sent again only when the machine would have shown it by now.

    Attributes:
        timeout_s: for one call of the controller.
        reset_shows_s: a controller that tells the time of resets has told it by then.
        boot_shows_s: a machine has started, and its agent has reported, by then.
    """

    url: str = "https://{bmc}"
    system: str = ""
    timeout_s: float = TIMEOUT_S
    reset_shows_s: float = 60.0
    boot_shows_s: float = 900.0


class Redfish:
    """The executor."""

    def __init__(self, name: str, config: RedfishConfig, destinations: Destinations, calls: OutgoingCalls) -> None:
        self.name, self._config, self._destinations, self._calls = name, config, destinations, calls

    async def progress_marker(self, host: Host) -> str:
        return _boot_marker(host, await self._system(host))

    async def begin(self, host: Host) -> str:
        system = await self._system(host)
        wanted = ("ForceOff",) if host.operation.kind == OPERATION_KIND_POWER_OFF else _RESTARTS
        target, allowed = _reset_action(system)
        chosen = next((one for one in wanted if one in allowed), "")
        if system.get("PowerState") == "Off" and host.operation.kind != OPERATION_KIND_POWER_OFF:
            chosen = "On"  # a machine that is off cannot be restarted
        if not chosen:
            raise ExecutorFailure(f"the controller offers {', '.join(allowed) or 'nothing'}, not {wanted[0]}")
        await self._call("POST", host, target, {"ResetType": chosen})
        return chosen

    async def poll(self, host: Host, age_s: float) -> PollResult:
        system = await self._system(host)
        power, intent = system.get("PowerState"), host.operation.intent
        if host.operation.kind == OPERATION_KIND_POWER_OFF:
            return PollResult(
                WorkProgress.DONE if power == "Off" else self._perhaps(intent, age_s, self._config.reset_shows_s)
            )
        if power != "On":
            return PollResult(self._perhaps(intent, age_s, self._config.reset_shows_s))
        shown = _boot_marker(host, system)
        if intent.before and shown != intent.before:
            return PollResult(WorkProgress.DONE, f"was {intent.before}, is {shown}")
        if not intent.before:
            # A second reset would be a guess.
            if intent.handle:
                return PollResult(WorkProgress.DONE, "the controller took the reset; it does not report restarts")
            return PollResult(WorkProgress.UNKNOWN, "this controller does not report restarts")
        told = intent.before.startswith("reset")
        return PollResult(
            self._perhaps(intent, age_s, self._config.reset_shows_s if told else self._config.boot_shows_s)
        )

    def _perhaps(self, intent: Intent, age_s: float, shows_s: float) -> WorkProgress:
        """The progress while the machine shows no sign of the work."""
        return WorkProgress.RUNNING if intent.handle or age_s < shows_s else WorkProgress.NOT_BEGUN

    async def _system(self, host: Host) -> dict[str, Any]:
        path = fill(self._config.system, host)
        if not path:
            members = (await self._call("GET", host, _SYSTEMS)).get("Members") or []
            if len(members) != 1:
                raise ExecutorFailure(f"the controller has {len(members)} systems: configure `system`")
            path = str(members[0].get("@odata.id", ""))
        return await self._call("GET", host, path if path.startswith("/") else f"{_SYSTEMS}/{path}")

    async def _call(self, method: str, host: Host, path: str, body: object = None) -> dict[str, Any]:
        if not _PATH.fullmatch(path):
            raise ExecutorFailure(f"the controller names {path[:80]!r}, which is not a path")
        try:
            base = parse_url(fill(self._config.url, host))
        except BadAddress as error:
            raise Unfit(f"host {host.name}: {error}") from error
        entry = self._destinations.controller_at(base.address, host.name, base.usual_port)
        if entry is None:
            raise Unfit(f"host {host.name}: {base.address} is not called: {not_listed('redfish')}")
        try:
            reply = await self._calls.send_to_controller(
                method, base, path, entry, body=body, timeout_s=self._config.timeout_s
            )
        except OutgoingCallFailed as error:
            raise ExecutorFailure(f"{method} {path}: {error}") from error
        if not reply.is_success:
            raise ExecutorFailure(f"{method} {path}: HTTP {reply.status}")
        return _object(reply)


def _boot_marker(host: Host, system: dict[str, Any]) -> str:
    reset = system.get("LastResetTime")
    return f"reset {reset}" if reset else f"boot {host.boot_id}" if host.boot_id else ""


def _reset_action(system: dict[str, Any]) -> tuple[str, list[str]]:
    action = (system.get("Actions") or {}).get("#ComputerSystem.Reset") or {}
    target = action.get("target")
    if not isinstance(target, str) or not target.startswith("/"):
        raise ExecutorFailure("the controller offers no ComputerSystem.Reset")
    return target, list(action.get("ResetType@Redfish.AllowableValues") or _RESTARTS)


def _object(reply: HttpReply) -> dict[str, Any]:
    if not reply.content:
        return {}
    value = reply.json()
    if not isinstance(value, dict):
        raise ExecutorFailure("the controller's answer is not a JSON object")
    return value


_STATES: Final = {"running": WorkProgress.RUNNING, "done": WorkProgress.DONE, "failed": WorkProgress.FAILED}


class WebhookExecutor:
    """The executor."""

    def __init__(
        self, name: str, endpoint: AllowedEndpoint, calls: OutgoingCalls, destinations: Destinations = NOWHERE
    ) -> None:
        """`destinations`: management controllers that the service is given; it may have an account for them."""
        self.name, self._endpoint, self._calls, self._destinations = name, endpoint, calls, destinations
        self._url = str(endpoint.url)

    async def progress_marker(self, host: Host) -> str:
        return ""

    async def begin(self, host: Host) -> str:
        operation = host.operation
        body = {
            "id": operation.id,
            "host": value_of("host", host),
            "bmc": self._bmc(host),
            "inventory": host.inventory,
            "operation": NAMES[operation.kind],
            "check": operation.check,
        }
        reply = await self._call("POST", self._url, body)
        if not reply.is_success:
            raise ExecutorFailure(f"POST {self._url}: HTTP {reply.status}")
        return operation.id

    async def poll(self, host: Host, age_s: float) -> PollResult:
        reply = await self._call("GET", f"{self._url}/{quote(host.operation.id, safe='')}")
        if reply.status == HTTPStatus.NOT_FOUND:
            return PollResult(WorkProgress.NOT_BEGUN)
        if not reply.is_success:
            raise ExecutorFailure(f"GET {self._url}: HTTP {reply.status}")
        answer = reply.json()
        state = answer.get("state") if isinstance(answer, dict) else None
        if not isinstance(state, str) or state not in _STATES:
            raise ExecutorFailure(f"GET {self._url}: the answer has no state of running, done or failed")
        return PollResult(_STATES[state], str(answer.get("output", "")))

    def _bmc(self, host: Host) -> str:
        """Empty: there is none, or no entry covers it; the service may do without."""
        try:
            return listed_bmc(host, self._destinations)
        except Unfit:
            return ""

    async def _call(self, method: str, url: str, body: object = None) -> HttpReply:
        endpoint = self._endpoint
        try:
            return await self._calls.send(method, url, body=body, headers=endpoint.headers(), tls=endpoint.tls)
        except OutgoingCallFailed as error:
            raise ExecutorFailure(f"{method} {url}: {error}") from error
