"""What etcd says happened, in one epoch: every record of every instance at every revision."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tests.checker.history import Item, Raw, Stored
from tests.checker.marks import words_of

Wanted = Mapping[str, str]


class Landing(NamedTuple):
    """A marker appeared in a record of an instance."""

    revision: int
    id: str
    kind: str  # spec or status


class TrueEvent(NamedTuple):
    """What a watch has to say of an instance."""

    version: int
    id: str
    kind: str


class Line:
    """One key through all revisions."""

    __slots__ = ("_at", "_deleted", "stored")

    def __init__(self) -> None:
        self._at: list[int] = []
        self._deleted: list[int] = []
        self.stored: list[Stored] = []

    def add(self, revision: int, stored: Stored) -> None:
        self._at.append(revision)
        if stored.kind != "put":
            self._deleted.append(revision)
        self.stored.append(stored)

    def exactly(self, revision: int) -> Stored | None:
        """What happened to the key at this very revision."""
        place = bisect_right(self._at, revision)
        return self.stored[place - 1] if place and self._at[place - 1] == revision else None

    def moved(self, after: int, upto: int) -> bool:
        """Whether anything happened in (after, upto]."""
        return bisect_right(self._at, upto) > bisect_right(self._at, after)

    def deleted_after(self, revision: int) -> int:
        """Revision of the first deletion after this revision; 0: there is none."""
        place = bisect_right(self._deleted, revision)
        return self._deleted[place] if place < len(self._deleted) else 0

    def at(self, revision: int) -> Stored | None:
        """The record as it was at a revision; None if there was none."""
        place = bisect_right(self._at, revision)
        last = self.stored[place - 1] if place else None
        return last if last is not None and last.kind == "put" else None


class Past:
    """The revisions of one epoch, those before its restore included.

    Attributes:
        raws: all of them, in order. head: the newest.
        landings: by marker: where it came into a record in which it had not been before.
        instances: every id that ever was.
    """

    def __init__(self, raws: Iterable[Raw] = ()) -> None:
        self.raws: list[Raw] = []
        self.head = 0
        self.specs: defaultdict[str, Line] = defaultdict(Line)
        self.statuses: defaultdict[str, Line] = defaultdict(Line)
        self.heartbeats: list[tuple[int, tuple[str, ...]]] = []
        self.epochs: list[str] = []
        self.landings: defaultdict[str, list[Landing]] = defaultdict(list)
        self.instances: dict[str, None] = {}
        self._ever: defaultdict[tuple[str, str], dict[str, None]] = defaultdict(dict)
        self._changed: list[tuple[int, list[str]]] = []
        for raw in raws:
            self.add(raw)

    def add(self, raw: Raw) -> None:
        self.raws.append(raw)
        self.head = max(self.head, raw.revision)
        changed: dict[str, None] = {}
        for stored in raw.events:
            kind, _, rest = stored.key.partition("/")
            if kind in ("spec", "status"):
                self._take(raw.revision, kind, rest, stored)
                changed[rest] = None
            elif kind == "beats" and stored.kind == "put":
                self.heartbeats.append((raw.revision, stored.marks))
            elif kind == "epoch" and stored.kind == "put":
                self.epochs += stored.marks
        if changed:
            self._changed.append((raw.revision, list(changed)))

    def _take(self, revision: int, kind: str, instance_id: str, stored: Stored) -> None:
        line = (self.specs if kind == "spec" else self.statuses)[instance_id]
        before = line.at(revision)
        line.add(revision, stored)
        self.instances[instance_id] = None
        if stored.kind != "put" or len(stored.marks) < 2:
            return
        known = words_of(before.marks[1]) if before is not None and len(before.marks) > 1 else []
        for word in words_of(stored.marks[1]):
            if word not in known:
                self.landings[word].append(Landing(revision, instance_id, kind))
        if kind == "spec":
            for name, held in zip(("service_id", "node_name"), stored.marks[2:], strict=False):
                self._ever[name, held][instance_id] = None

    # --- as it was --------------------------------------------------------------------------------------------------

    def item(self, instance_id: str, revision: int) -> Item | None:
        """The instance as it was at a revision."""
        spec, status = self.specs[instance_id].at(revision), self.statuses[instance_id].at(revision)
        if spec is None:
            return None
        status_at, status_mark = (status.modified, status.marks[1]) if status is not None else (0, "")
        return Item(spec.modified, status_at, spec.marks[1], status_mark)

    def passes(self, wanted: Wanted, instance_id: str, revision: int) -> bool:
        """Whether the instance was there and passed a filter."""
        spec = self.specs[instance_id].at(revision)
        if spec is None:
            return False
        status = self.statuses[instance_id].at(revision)
        held = {
            "instance_id": instance_id,
            "service_id": spec.marks[2],
            "node_name": spec.marks[3],
            "ready": status.marks[2] if status is not None else "F",
        }
        return all(held[name] == word for name, word in wanted.items())

    def matching(self, wanted: Wanted, revision: int) -> dict[str, Item]:
        """Everything that passed, by id."""
        found = ((i, self.item(i, revision)) for i in self._candidates(wanted) if self.passes(wanted, i, revision))
        return {instance_id: item for instance_id, item in found if item is not None}

    def events(self, wanted: Wanted, after: int, upto: int) -> Iterator[TrueEvent]:
        """What a watch with this filter has to say of the revisions in (after, upto]."""
        place = bisect_right(self._changed, after, key=lambda change: change[0])
        while place < len(self._changed) and self._changed[place][0] <= upto:
            revision, ids = self._changed[place]
            for instance_id in ids:
                if self.passes(wanted, instance_id, revision):
                    yield TrueEvent(revision, instance_id, "put")
                elif self.passes(wanted, instance_id, revision - 1):
                    stays = self.specs[instance_id].at(revision) is not None
                    yield TrueEvent(revision, instance_id, "left" if stays else "delete")
            place += 1

    def touched(self, instance_id: str, revision: int) -> Stored | None:
        """What became of the spec record at this very revision, if anything did."""
        return self.specs[instance_id].exactly(revision) if instance_id in self.specs else None

    def was_created_with(self, instance_id: str, revision: int, marker: str) -> bool:
        """Whether what stood at this revision had the marker when it was created."""
        line = self.specs[instance_id]
        shown = line.at(revision)
        made = line.exactly(shown.created) if shown is not None else None
        return made is not None and marker in words_of(made.marks[1])

    def seen_ns(self) -> dict[int, int]:
        """When the observer got each revision, of those where that is known."""
        return {raw.revision: raw.seen_ns for raw in self.raws if raw.seen_ns}

    def last_change(self) -> int:
        """The newest revision that changed an instance."""
        return self._changed[-1][0] if self._changed else 0

    def _candidates(self, wanted: Wanted) -> Iterable[str]:
        if "instance_id" in wanted:
            return (wanted["instance_id"],)
        for name in ("service_id", "node_name"):
            if name in wanted:
                return self._ever.get((name, wanted[name]), {})
        return self.instances
