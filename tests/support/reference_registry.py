"""What a registry should hold after a sequence of calls: a plain model, with none of HQ's means.

Every method says what the call must be answered: "" for an acknowledgement, else the reason of the refusal.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

STOP = "STOP"  # any of the reasons for which an agent stops


@dataclass
class ModelInstance:
    """One instance. `reported`: by revision, whether it is ready; `reporters`: whose turn it is, by revision."""

    service: str
    node: str
    revisions: list[str]
    version: int = 0
    reported: dict[str, bool] = field(default_factory=dict)
    reporters: dict[str, int] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return any(self.reported.values())

    def keep(self, revisions: list[str]) -> None:
        """The spec lists these now."""
        self.revisions = revisions
        for held in (self.reported, self.reporters):
            for gone in set(held) - set(revisions):
                del held[gone]


class Model:
    """The instances by id."""

    def __init__(self) -> None:
        self.instances: dict[str, ModelInstance] = {}

    def copy(self) -> Model:
        other = Model()
        other.instances = copy.deepcopy(self.instances)
        return other

    def create(self, instance_id: str, service: str, node: str, revisions: list[str]) -> str:
        if instance_id in self.instances:
            return "ALREADY_EXISTS"
        self.instances[instance_id] = ModelInstance(service, node, list(revisions))
        return ""

    def apply(self, instance_id: str, service: str) -> str:
        if self.create(instance_id, service, "node-1", ["r1", "r2"]):
            self.update(instance_id, 0, service=service, node="node-1")
            self.instances[instance_id].keep(["r1", "r2"])
        return ""

    def update(self, instance_id: str, version: int, *, service: str = "", node: str = "") -> str:
        refusal = self._demanded(instance_id, version)
        if not refusal:
            found = self.instances[instance_id]
            found.service = service or found.service
            if node and node != found.node:
                found.node = node
                found.reported.clear()
                found.reporters.clear()
        return refusal

    def put_revision(self, instance_id: str, revision_id: str, version: int) -> str:
        refusal = self._demanded(instance_id, version)
        if not refusal and revision_id not in self.instances[instance_id].revisions:
            self.instances[instance_id].revisions.append(revision_id)
        return refusal

    def delete_revision(self, instance_id: str, revision_id: str) -> str:
        found = self.instances.get(instance_id)
        if found is None or revision_id not in found.revisions:
            return "NOT_FOUND"
        found.keep([each for each in found.revisions if each != revision_id])
        return ""

    def delete(self, instance_id: str, version: int) -> str:
        refusal = self._demanded(instance_id, version)
        if not refusal:
            del self.instances[instance_id]
        return refusal

    def begin(self, instance_id: str, revision_id: str, node: str, reporter: int) -> str:
        found = self.instances.get(instance_id)
        if found is None or found.node != node or revision_id not in found.revisions:
            return STOP
        found.reporters[revision_id] = reporter
        return ""

    def report(self, instance_id: str, revision_id: str, reporter: int, *, ready: bool) -> str:
        found = self.instances.get(instance_id)
        if found is None or found.reporters.get(revision_id) != reporter:
            return STOP
        found.reported[revision_id] = ready
        return ""

    def all_silent(self) -> None:
        """Nobody was heard for longer than the timeout."""
        for found in self.instances.values():
            found.reported = dict.fromkeys(found.reported, False)

    def matching(self, wanted: dict[str, str]) -> set[str]:
        """Ids of those that pass a filter in the words of tests/checker."""
        return {
            instance_id
            for instance_id, found in self.instances.items()
            if wanted.get("service_id", found.service) == found.service
            and wanted.get("node_name", found.node) == found.node
            and wanted.get("ready", "T" if found.ready else "F") == ("T" if found.ready else "F")
        }

    def _demanded(self, instance_id: str, version: int) -> str:
        found = self.instances.get(instance_id)
        if found is None:
            return "NOT_FOUND"
        return "VERSION_CONFLICT" if version not in (0, found.version) else ""
