"""State that must survive a crash of ours: which processes run, and which revisions are installed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from instancectl.files import write_atomically
from instancectl.processes.procfs import ProcessId
from instancectl.wanted.desired import RevisionContentKey


@dataclass(frozen=True, slots=True)
class RunningChild:
    """A container's process as recorded before its command started.

    Attributes:
        container_digest: digest of what it was started from.
        group: its cgroup; empty: none.
        grace_s: how long its stop may take, in case its specification is no longer known.
        is_ready: its checks found it ready. Still so while it drains: a successor shall drain it, too.
        failed_checks: how many checks in a row have failed since then.
        has_begun: its start hook, if it has one, succeeded.
        is_up: its startup check, if it has one, passed.
        strikes: how many checks that may stop it have failed in a row.
        isolation: what keeps it apart; empty: not recorded.
        stop_signal: what asks it to end, in case its specification is no longer known.
    """

    revision: RevisionContentKey
    container: str
    container_digest: str
    process: ProcessId
    mark: str
    group: str
    limits: str
    grace_s: float
    started_wall_s: float
    restarts: int
    is_ready: bool = False
    failed_checks: int = 0
    has_begun: bool = True
    is_up: bool = True
    strikes: int = 0
    stop_signal: str = "SIGTERM"
    isolation: str = ""


@dataclass(frozen=True, slots=True)
class EndedContainer:
    """A container that ended and is not started again before the next boot.

    Attributes:
        end: its ContainerTerminated as JSON.
    """

    revision: RevisionContentKey
    container: str
    container_digest: str
    boot_id: str
    restarts: int
    end: dict[str, Any]


@dataclass
class SupervisorState:
    """Everything in the state file.

    Attributes:
        owner: marks the processes of this directory.
        belongs_to: instance and node that the directory is for; empty: not claimed yet.
        installed: digests of the contents that each installed revision uses.
    """

    owner: str = field(default_factory=lambda: secrets.token_hex(8))
    belongs_to: tuple[str, str] = ("", "")
    installed: dict[RevisionContentKey, list[str]] = field(default_factory=dict)
    children: dict[str, RunningChild] = field(default_factory=dict)
    ended: dict[str, EndedContainer] = field(default_factory=dict)


class StateFile:
    """Keeps `state` and writes it to disk with each change."""

    def __init__(self, path: Path) -> None:
        """Raises StateUnreadable."""
        self._path = path
        self.state = _load(path)

    def set_owner(self, instance_id: str, node: str) -> None:
        self.state.belongs_to = (instance_id, node)
        self._save()

    def add_installed(self, key: RevisionContentKey, contents: list[str]) -> None:
        self.state.installed[key] = sorted(set(contents))
        self._save()

    def remove_installed(self, key: RevisionContentKey) -> None:
        if self.state.installed.pop(key, None) is not None:
            self._try_to_save()

    def add_child(self, child: RunningChild) -> None:
        self.state.children[_name(child.revision, child.container)] = child
        self._save()

    def record_check(self, revision: RevisionContentKey, container: str, *, is_ready: bool, failed_checks: int) -> None:
        """Write what the last check found, if it is news."""
        self._change(revision, container, is_ready=is_ready, failed_checks=failed_checks)

    def record_begun(self, revision: RevisionContentKey, container: str) -> None:
        """Record that its start hook succeeded."""
        self._change(revision, container, has_begun=True)

    def record_up(self, revision: RevisionContentKey, container: str) -> None:
        """Record that its startup check passed."""
        self._change(revision, container, is_up=True, strikes=0)

    def record_strikes(self, revision: RevisionContentKey, container: str, strikes: int) -> None:
        """Record how many checks that may stop it have failed in a row."""
        self._change(revision, container, strikes=strikes)

    def _change(self, revision: RevisionContentKey, container: str, **fields: Any) -> None:
        name = _name(revision, container)
        if (known := self.state.children.get(name)) is None:
            return
        if (changed := dataclasses.replace(known, **fields)) != known:
            self.state.children[name] = changed
            self._try_to_save()

    def add_ended(self, ended: EndedContainer) -> None:
        self.state.ended[_name(ended.revision, ended.container)] = ended
        self._try_to_save()

    def remove_ended(self, revision: RevisionContentKey, container: str) -> None:
        if self.state.ended.pop(_name(revision, container), None) is not None:
            self._try_to_save()

    def remove_child(self, revision: RevisionContentKey, container: str) -> None:
        if self.state.children.pop(_name(revision, container), None) is not None:
            self._try_to_save()

    def forget(self) -> None:
        """Remove the state: the instance is gone."""
        self.state = SupervisorState(owner=self.state.owner)
        self._path.unlink(missing_ok=True)

    @property
    def contents_in_use(self) -> set[str]:
        return {digest for used in self.state.installed.values() for digest in used}

    def _try_to_save(self) -> None:
        # On a full disk: an extra entry or an old word does no harm, as both are checked against what really exists.
        with contextlib.suppress(OSError):
            self._save()

    def _save(self) -> None:
        write_atomically(self._path, json.dumps(_to_json(self.state), indent=1).encode())


class StateUnreadable(Exception):
    """The state file is damaged. Unknown processes may be running, so a person has to decide."""


def _name(revision: RevisionContentKey, container: str) -> str:
    return f"{revision.id}~{revision.digest}/{container}"


def _to_json(state: SupervisorState) -> dict[str, Any]:
    return {
        "owner": state.owner,
        "belongs_to": list(state.belongs_to),
        "installed": [{"id": k.id, "digest": k.digest, "contents": c} for k, c in state.installed.items()],
        "children": [_without_checks(child) for child in state.children.values()],
        "checks": {name: _checks(child) for name, child in state.children.items()},
        "ended": [dataclasses.asdict(ended) for ended in state.ended.values()],
    }


# After a downgrade release 0.1.0 takes over from us, and refuses a child with a field that it does not know.
_CHECKS = ("is_ready", "failed_checks", "has_begun", "is_up", "strikes", "stop_signal", "isolation")


def _without_checks(child: RunningChild) -> dict[str, Any]:
    return {name: value for name, value in dataclasses.asdict(child).items() if name not in _CHECKS}


def _checks(child: RunningChild) -> dict[str, Any]:
    return {name: getattr(child, name) for name in _CHECKS}


def _known_checks(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name in _CHECKS}


def _load(path: Path) -> SupervisorState:
    try:
        document = json.loads(path.read_text())
        children = {_name(child.revision, child.container): child for child in map(_child, document["children"])}
        checks = {name: _known_checks(found) for name, found in document.get("checks", {}).items()}
        ended = [_ended_container(item) for item in document.get("ended", ())]
        instance_id, node = document["belongs_to"]
        return SupervisorState(
            owner=document["owner"],
            belongs_to=(instance_id, node),
            installed={RevisionContentKey(i["id"], i["digest"]): i["contents"] for i in document["installed"]},
            children={name: dataclasses.replace(child, **checks.get(name, {})) for name, child in children.items()},
            ended={_name(each.revision, each.container): each for each in ended},
        )
    except FileNotFoundError:
        return SupervisorState()
    except (ValueError, KeyError, TypeError) as error:
        message = f"{path} is damaged ({error}): stop this instance's processes, then remove the file"
        raise StateUnreadable(message) from None


# A supervisor must be able to take over from one of an earlier version, which used these names, and from a later one,
# whose further fields it leaves out.
_FORMER_NAMES = {"section": "container", "section_digest": "container_digest"}
_FIELDS = {field.name for field in dataclasses.fields(RunningChild)}


def _child(item: Mapping[str, Any]) -> RunningChild:
    named = {_FORMER_NAMES.get(name, name): value for name, value in item.items()}
    rest = {name: value for name, value in named.items() if name in _FIELDS - {"revision", "process"}}
    return RunningChild(revision=RevisionContentKey(**item["revision"]), process=ProcessId(**item["process"]), **rest)


def _ended_container(item: Mapping[str, Any]) -> EndedContainer:
    return EndedContainer(**{**item, "revision": RevisionContentKey(**item["revision"])})
