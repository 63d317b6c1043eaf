"""Answers of both forms, encoded once for all streams that get the same, with one nonce."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from google.protobuf.any_pb2 import Any

from xdspb.v1 import xds_pb2 as pb

_MOST_RESPONSES: Final = 64  # each may have the endpoints of many services
_MOST_VERSIONS: Final = 10_000
_VERSION_BYTES: Final = 8
_Content = tuple[str, tuple[bytes, ...], tuple[str, ...] | None]


class XdsResponses:
    """Makes answers of encoded resources.

    A nonce tells the answers of one stream apart. Different answers never share one.
    """

    def __init__(self) -> None:
        self._made: dict[_Content, tuple[str, bytes]] = {}
        self._versions: dict[bytes, str] = {}
        self._nonces = 0

    def clear(self) -> None:
        """Forget what was made: after a change it is hardly asked for again."""
        self._made.clear()
        self._versions.clear()

    def version(self, resource: bytes) -> str:
        """Version of one resource: a digest, so that all gateways give the same, also after a restart."""
        kept = self._versions.get(resource)
        if kept is None:
            if len(self._versions) >= _MOST_VERSIONS:
                self._versions.clear()
            kept = self._versions[resource] = hashlib.blake2b(resource, digest_size=_VERSION_BYTES).hexdigest()
        return kept

    def response(
        self, type_url: str, version: str, resources: Mapping[str, bytes], removed: Sequence[str] | None = None
    ) -> tuple[str, bytes]:
        """A nonce and the answer: a DeltaDiscoveryResponse if `removed` is given, even empty; else a DiscoveryResponse.

        `resources`: google.protobuf.Any by name. `version`: of all of them.
        """
        content = type_url, tuple(resources.values()), None if removed is None else tuple(removed)
        kept = self._made.get(content)
        if kept is None:
            if len(self._made) >= _MOST_RESPONSES:
                self.clear()
            self._nonces += 1
            kept = self._made[content] = str(self._nonces), self._encode(type_url, version, resources, removed)
        return kept

    def _encode(
        self, type_url: str, version: str, resources: Mapping[str, bytes], removed: Sequence[str] | None
    ) -> bytes:
        nonce = str(self._nonces)
        if removed is None:
            about = pb.DiscoveryResponse(version_info=version, nonce=nonce, type_url=type_url).SerializeToString()
            return about + b"".join([delimited_field(2, resource) for resource in resources.values()])
        head = pb.DeltaDiscoveryResponse(
            system_version_info=version, nonce=nonce, type_url=type_url, removed_resources=removed
        )
        parts = [delimited_field(2, self._wrap_resource(name, resource)) for name, resource in resources.items()]
        return head.SerializeToString() + b"".join(parts)

    def _wrap_resource(self, name: str, resource: bytes) -> bytes:
        about = pb.Resource(name=name, version=self.version(resource)).SerializeToString()
        return about + delimited_field(2, resource)


def pack_any(type_url: str, value: bytes) -> bytes:
    """A google.protobuf.Any."""
    return Any(type_url=type_url, value=value).SerializeToString()


def delimited_field(field: int, value: bytes) -> bytes:
    """A field of bytes, as protobuf encodes it."""
    size, length = bytearray(), len(value)
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return bytes((field << 3 | 2,)) + bytes(size) + value
