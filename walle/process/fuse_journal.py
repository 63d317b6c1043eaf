"""Tells recorders what the store has of fuses and limits, each change as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from control import Controller
from control.errors import Unreadable
from control.followers import EntryFollower
from walle.fuses.fuse import GLOBAL
from walle.fuses.limits import Limits
from walle.work.book import FUSE, PROJECT
from wallepb.v1.project_pb2 import Fuse, FuseEntry, FuseLimits, FusesStart, Project

FuseFollower = EntryFollower[FuseEntry]


class FuseJournal:
    """Runs in every process: a fuse's record holds its decisions, and each process sees each change of a record."""

    def __init__(self, controller: Controller, global_limits: Limits) -> None:
        self._controller, self._global_limits = controller, global_limits
        self._fuses: Mapping[str, Fuse] = controller.records(FUSE)
        self._projects: Mapping[str, Project] = controller.records(PROJECT)
        self._followers: set[FuseFollower] = set()
        self._limits: dict[str, FuseLimits] = {}
        controller.records(FUSE).listen(self._on_fuse)
        controller.records(PROJECT).listen(self._on_project)

    @contextmanager
    def follow(self) -> Iterator[FuseFollower]:
        """All fuses and limits, and then what changes."""
        if not self._followers:
            self._limits = {name: _limits_of(name, one.limits) for name, one in self._projects.items()}
        everyones = _limits_of(GLOBAL, self._global_limits)
        start = FusesStart(limits=[everyones, *self._limits.values()], fuse=list(self._fuses.values()))
        follower = FuseFollower([FuseEntry(start=start)])
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    def _on_fuse(self, fuse_id: str) -> None:
        if not self._followers:
            return
        try:
            fuse = self._fuses.get(fuse_id) or Fuse(id=fuse_id)
        except Unreadable:
            self._end()
        else:
            self._tell(FuseEntry(fuse=fuse))

    def _on_project(self, project_id: str) -> None:
        if not self._followers:
            return
        try:
            project = self._projects.get(project_id) or Project()
        except Unreadable:
            self._end()
            return
        limits = _limits_of(project_id, project.limits)
        if self._limits.get(project_id) != limits:
            self._limits[project_id] = limits
            self._tell(FuseEntry(limits=limits))

    def _tell(self, entry: FuseEntry) -> None:
        if self._controller.why_not_loaded():
            self._end()  # all is read again: what was missed is not known
        for follower in self._followers:
            follower.add([entry])

    def _end(self) -> None:
        for follower in self._followers:
            follower.end()


def _limits_of(fuse_id: str, limits: Limits) -> FuseLimits:
    return FuseLimits(fuse=fuse_id, limits=dict(limits))
