"""Where an operation's CMSs and executors come from: the project's settings, and the configuration file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, assert_never

from walle.approval.client import HttpCms
from walle.approval.protocol import DEFAULT, CmsEvent, CmsFailure, CmsPort
from walle.executors.command import Command, CommandConfig
from walle.executors.dns import Dns, DnsConfig
from walle.executors.over_http import Redfish, RedfishConfig, WebhookExecutor
from walle.executors.port import Executor, NoOp, Unfit
from walle.outgoing.calls import OutgoingCalls
from walle.outgoing.destinations import AllowedEndpoint, not_listed, parse_url
from walle.process.config import FileConfig
from walle.process.storing import Storing
from walle.tables import NAMES
from walle.work.book import Notice
from walle.work.default_cms import DefaultCms
from wallepb.v1.host_pb2 import OPERATION_KIND_DEACTIVATE, OPERATION_KIND_PREPARE, OperationKind
from wallepb.v1.project_pb2 import SEVERITY_ERROR, Project
from wallepb.v1.project_pb2 import Cms as CmsSetting

_WITHOUT_WORK: Final = (OPERATION_KIND_PREPARE, OPERATION_KIND_DEACTIVATE)
_SAID_EVERY_S: Final = 600.0


class CmsEvents:
    """Counts the calls of CMSs, and tells owners when those of an action begin to fail, at most every ten minutes.

    Attributes:
        calls: by CMS, action and result.
    """

    def __init__(self, now_s: Callable[[], float], notify: Callable[[Iterable[Notice]], None]) -> None:
        self._now_s, self._notify = now_s, notify
        self.calls: Counter[tuple[str, str, str]] = Counter()
        self._said: dict[tuple[str, str, str], float] = {}
        self._failing: set[tuple[str, str, str]] = set()

    def send(self, event: CmsEvent, project: str) -> None:
        action = event.tags[0].rpartition(".")[2]
        self.calls[event.host, action, "ok" if event.is_ok else "failed"] += 1
        now_s, key = self._now_s(), (project, event.host, action)
        if event.is_ok:
            self._failing.discard(key)
        elif key not in self._failing and now_s - self._said.get(key, -_SAID_EVERY_S) >= _SAID_EVERY_S:
            self._failing.add(key)
            self._said[key] = now_s
            tags = " ".join(event.tags)
            text = f"{event.service} {event.host}: {event.description} ({tags})"
            self._notify([Notice(SEVERITY_ERROR, project, text, cause=f"{event.host} {action}")])


class ConfiguredProviders:
    """CMSs of projects and executors of kinds, as configured."""

    def __init__(
        self,
        config: FileConfig,
        projects: Mapping[str, Project],
        storing: Storing,
        events: CmsEvents,
        calls: OutgoingCalls,
    ) -> None:
        self._config, self._projects, self._storing = config, projects, storing
        self.destinations, self.agent_checks = config.destinations, config.agent_checks
        self._events, self._calls = events, calls
        self._executors = {name: self._create_executor(name) for name in config.executors}
        self._nothing = NoOp()

    def cms(self, project: str, url: str) -> CmsPort:
        setting = next((one for one in self._settings(project) if one.url == url), None)
        if setting is None:
            raise CmsFailure(f"project {project} has no such CMS any more")
        if url == DEFAULT:
            return DefaultCms(self._storing, project)
        endpoint = self.destinations.cms_at(url, setting.tvm_app_id)
        if endpoint is None:
            raise CmsFailure(f"it is not called: {not_listed('cms', setting.tvm_app_id)}")
        # The URL as it was parsed for the comparison with the entry: another parser might read the text otherwise.
        return HttpCms(self._calls, self._events, project, str(parse_url(url)), setting.version, endpoint)

    def executor(self, kind: OperationKind) -> Executor:
        name = self._config.operations.get(kind)
        if name is not None:
            return self._executors[name]
        if kind in _WITHOUT_WORK:
            return self._nothing
        raise Unfit(f"no executor is configured for {NAMES[kind]}: name one under operations")

    async def close(self) -> None:
        for executor in self._executors.values():
            if isinstance(executor, Command):
                await executor.close()
        await self._calls.aclose()

    def _settings(self, project: str) -> list[CmsSetting]:
        found = self._projects.get(project)
        return list(found.cms) if found is not None else []

    def _create_executor(self, name: str) -> Executor:
        config = self._config.executors[name]
        if isinstance(config, RedfishConfig):
            return Redfish(name, config, self.destinations, self._calls)
        if isinstance(config, CommandConfig):
            return Command(name, config, self.destinations)
        if isinstance(config, AllowedEndpoint):
            return WebhookExecutor(name, config, self._calls, self.destinations)
        if isinstance(config, DnsConfig):
            return Dns(name, config)
        if config is None:
            return NoOp()
        assert_never(config)  # else a type that is left out here would do nothing, and say that it did
