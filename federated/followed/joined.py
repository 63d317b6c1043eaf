"""The pictures of all locations of one filter as one answer, made again only where something changed."""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left, insort
from collections.abc import Mapping
from typing import Final, NamedTuple

from federated.encoded import scan
from federated.followed.picture import Picture
from hqpb.v1 import instance_pb2, service_pb2
from serving.encoding.jsonio import to_json

_SLICE_S: Final = 0.005  # JSON is made for so long before the loop gets a turn
Place = tuple[bytes, str]


class Body(NamedTuple):
    """The instances of an answer, and how many. `generation`: another one, and something changed."""

    frames: bytes
    instances: int
    generation: int


class Joined:
    """Instances of several pictures, in order of ids, then of locations."""

    def __init__(self, pictures: Mapping[str, Picture]) -> None:
        self._pictures = pictures
        self._order: list[Place] = []
        self._json: dict[Place, bytes] = {}
        self._json_list: tuple[int, bytes] = (-1, b"")
        self._body = Body(b"", 0, 0)

    @property
    def json_bytes(self) -> int:
        """What is kept as JSON, about: each instance by itself, and all in a list."""
        return 2 * len(self._json_list[1])

    def body(self) -> Body:
        """All frames, joined."""
        changes = {name: self._moved(name, picture) for name, picture in self._pictures.items()}
        if any(changes.values()):
            frames = [self._pictures[name].frames[one] for one, name in self._order]
            self._body = Body(b"".join(frames), len(frames), self._body.generation + 1)
        return self._body

    async def json(self) -> bytes:
        """The instances as elements of a JSON list, as of some moment during the call."""
        loop = asyncio.get_running_loop()
        while self._json_list[0] != (generation := self.body().generation):
            began = loop.time()
            for place in [place for place in self._order if place not in self._json]:
                frame = self._pictures[place[1]].frames.get(place[0])
                if frame is not None:
                    self._json[place] = _as_json(frame)
                if loop.time() - began > _SLICE_S:
                    await asyncio.sleep(0)
                    began = loop.time()
            if self.body().generation == generation:
                self._json_list = generation, b",".join(self._json[place] for place in self._order)
        return self._json_list[1]

    def _moved(self, name: str, picture: Picture) -> bool:
        """Bring the order up to date; whether anything changed."""
        changed, picture.changed = picture.changed, set()
        if changed is None:
            self._order = sorted([p for p in self._order if p[1] != name] + [(one, name) for one in picture.frames])
            self._json = {place: text for place, text in self._json.items() if place[1] != name}
            return True
        for one in changed:
            place = one, name
            self._json.pop(place, None)
            at = bisect_left(self._order, place)
            is_there = at < len(self._order) and self._order[at] == place
            if one not in picture.frames:
                del self._order[at : at + is_there]
            elif not is_there:
                insort(self._order, place)
        return bool(changed)


class FollowedAnswer:
    """An answer from memory."""

    __slots__ = ("_body", "_joined", "_sources")

    def __init__(self, joined: Joined, sources: bytes) -> None:
        self._joined, self._sources = joined, sources
        self._body = joined.body().frames

    def proto(self) -> bytes:
        return self._body + self._sources

    async def json(self) -> bytes:
        told = json.loads(to_json(service_pb2.FindInstancesResponse.FromString(self._sources)))
        tail = json.dumps(told, separators=(",", ":"), ensure_ascii=False).encode()
        listed = await self._joined.json()
        return b'{"instances":[' + listed + b"]," + tail[1:] if listed else tail


def _as_json(frame: bytes) -> bytes:
    field = next(scan.fields(frame))
    return to_json(instance_pb2.Instance.FromString(frame[field.value_at : field.end]))
