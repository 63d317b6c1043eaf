"""The pictures of all locations for one filter as one answer, rebuilt only where something changed."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Awaitable, Mapping
from typing import NamedTuple

from federated.encoded.answers import frames_as_json, tail_as_json
from federated.followed.picture import LocationFrames
from hqapi.pieces import Pieces

Place = tuple[bytes, str]


class Body(NamedTuple):
    """The instances of an answer, and how many. `generation` changes with every change."""

    frames: bytes
    instances: int
    generation: int


class MergedList:
    """Instances of several pictures, in order of ids, then of locations; and the last answers made of them."""

    def __init__(self, pictures: Mapping[str, LocationFrames], pieces: Pieces) -> None:
        self._pictures, self._pieces = pictures, pieces
        self._order: list[Place] = []
        self._body = Body(b"", 0, 0)
        self._json: tuple[int, bytes] = (-1, b"")
        self._proto_answer: tuple[int, bytes, bytes] = (-1, b"", b"")
        self._json_answer: tuple[int, bytes, bytes] = (-1, b"", b"")

    @property
    def size_bytes(self) -> int:
        """Size of the joined answers, without the pictures."""
        kept = (self._body.frames, self._json[1], self._proto_answer[2], self._json_answer[2])
        return sum(map(len, kept))

    def body(self) -> Body:
        """All frames, joined."""
        # An empty set: nothing changed; None: everything may have.
        changed = [(name, one) for name, one in self._pictures.items() if one.changed or one.changed is None]
        if any([self._update_order(name, picture) for name, picture in changed]):  # noqa: C419  # each of them is to be moved
            frames = self._frames()
            self._body = Body(b"".join(frames), len(frames), self._body.generation + 1)
        return self._body

    def proto(self, sources: bytes) -> bytes:
        """The answer with these sources."""
        generation = self.body().generation
        if self._proto_answer[:2] != (generation, sources):
            self._proto_answer = generation, sources, self._body.frames + sources
        return self._proto_answer[2]

    def json(self, sources: bytes) -> bytes | Awaitable[bytes]:
        """The same as JSON, which is generated first if it is not cached."""
        generation = self.body().generation
        if self._json[0] != generation:
            return self._current_json(sources)
        if self._json_answer[:2] != (generation, sources):
            self._json_answer = generation, sources, self._json[1] + tail_as_json(sources)
        return self._json_answer[2]

    async def _current_json(self, sources: bytes) -> bytes:
        """The list as JSON, as it stood during the call: encoded again if it changed meanwhile."""
        while self._json[0] != (generation := self.body().generation):
            listed = await frames_as_json(self._frames(), self._pieces)
            if self.body().generation == generation:
                self._json = generation, listed
        return self._json[1] + tail_as_json(sources)

    def _frames(self) -> list[bytes]:
        return [self._pictures[name].frames[one] for one, name in self._order]

    def _update_order(self, name: str, picture: LocationFrames) -> bool:
        """Bring the order up to date; return whether anything changed."""
        changed, picture.changed = picture.changed, set()
        if changed is None:
            self._order = sorted([p for p in self._order if p[1] != name] + [(one, name) for one in picture.frames])
            return True
        for one in changed:
            place = one, name
            at = bisect_left(self._order, place)
            is_there = at < len(self._order) and self._order[at] == place
            if one not in picture.frames:
                del self._order[at : at + is_there]
            elif not is_there:
                insort(self._order, place)
        return bool(changed)


class FollowedAnswer:
    """An answer from memory."""

    __slots__ = ("_joined", "_sources")

    def __init__(self, joined: MergedList, sources: bytes) -> None:
        self._joined, self._sources = joined, sources

    def proto(self) -> bytes:
        return self._joined.proto(self._sources)

    def json(self) -> bytes | Awaitable[bytes]:
        return self._joined.json(self._sources)
