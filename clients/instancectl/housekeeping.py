"""The directory of an instance: claimed once, kept tidy, and emptied when nothing of it is wanted any more."""

from __future__ import annotations

from collections.abc import Collection

from instancectl.background import run_in_thread
from instancectl.content import volumes
from instancectl.content.directories import remove_tree
from instancectl.content.fetch import ContentStore
from instancectl.layout import Layout, directory_name
from instancectl.state import StateFile
from instancectl.wanted.desired import Desired, RevisionContentKey


class WrongDirectory(Exception):
    """The directory belongs to another instance, or to the same one on another node."""


class Housekeeping:
    """Keeps one directory tidy."""

    def __init__(self, layout: Layout, state: StateFile) -> None:
        self._layout = layout
        self._state = state
        self._store = ContentStore(layout.store)

    def claim(self, desired: Desired) -> None:
        """Claim the directory for this instance. A mistyped name must not make us remove another instance's files.

        Raises:
            WrongDirectory: it is another instance's.
        """
        owner, mine = self._state.state.belongs_to, (desired.instance_id, desired.node)
        if owner == ("", ""):
            self._state.set_owner(*mine)
        elif owner != mine:
            there, here = (f"instance {instance} on node {node}" for instance, node in (owner, mine))
            raise WrongDirectory(f"{self._layout.root} belongs to {there}, not to {here}: choose another directory")

    def occupied_by(self) -> RevisionContentKey | None:
        """A revision that cannot be removed yet: processes of an earlier supervisor run in it."""
        children = self._state.state.children.values()
        return next((child.revision for child in children if child.process.exists()), None)

    async def tidy(self, known: Collection[RevisionContentKey]) -> None:
        """Remove what an interrupted preparation left behind."""
        names = {directory_name(key) for key in known}
        for path in self._layout.revisions.iterdir():
            if path.name not in names:
                await run_in_thread(lambda _, path=path: remove_tree(path))  # type: ignore[misc]
        for path in self._layout.store.glob(".*.part"):
            if self._layout.owns_store:
                path.unlink(missing_ok=True)

    async def drop_traces(self, key: RevisionContentKey, still_wanted: Collection[RevisionContentKey]) -> None:
        """Remove pipes and logs of a revision; logs only if no other version of the same revision writes to them."""
        for pipe in self._layout.pipes_of(key):
            pipe.unlink(missing_ok=True)
        if key.id not in {other.id for other in still_wanted}:
            await run_in_thread(lambda _: remove_tree(self._layout.logs_of(key.id)))

    async def drop_unused_contents(self, *, is_idle: bool) -> None:
        """Remove contents that no installed revision uses; those of a shared store may be used by others."""
        if is_idle and self._layout.owns_store:
            await run_in_thread(lambda _: self._store.keep_only(self._state.contents_in_use))

    async def free(self, last: Desired | None, *, keep_data: bool) -> None:
        """Remove everything of the instance; `keep_data`: except persistent volumes."""
        await run_in_thread(lambda _: self._free(last, keep_data))
        self._state.forget()

    def _free(self, last: Desired | None, keep_data: bool) -> None:
        self._layout.last_good.unlink(missing_ok=True)
        self._layout.free(volumes=not keep_data)
        if last is not None and not keep_data:
            for place in volumes.persistent_places(last):
                remove_tree(place)
        self._layout.make()
