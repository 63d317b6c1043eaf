"""Tasks in a CMS that carry our installation and belong to no operation: seen so twice, they are deleted. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from walle.approval.combination import id_prefix


class Collector:
    """What was seen without an operation at the last look, per CMS.

    Twice, because an operation may have been stored after the list was made, or ended just before.
    """

    def __init__(self, installation: str) -> None:
        self._prefix = id_prefix(installation)
        self._suspects: dict[str, set[str]] = {}

    def look(self, cms: str, listed: Iterable[str], wanted: Collection[str]) -> list[str]:
        """The tasks to delete now. `wanted`: ids of all tasks of operations and scenarios, read after the list."""
        stray = self.unknown(listed, wanted)
        before = self._suspects.get(cms, set())
        self._suspects[cms] = stray
        return sorted(stray & before)

    def unknown(self, listed: Iterable[str], wanted: Collection[str]) -> set[str]:
        """Ours, and of nothing that we know."""
        return {task for task in listed if task.startswith(self._prefix) and task not in wanted}

    def strays(self) -> int:
        """How many tasks are under suspicion; for metrics."""
        return sum(len(tasks) for tasks in self._suspects.values())
