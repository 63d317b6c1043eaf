"""One spoiled call over gRPC, and its answer as bytes."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2  # type: ignore[import-untyped]

from tests.fuzz import requests
from tests.fuzz.verdict import HANG_S, Asked, Got

_STREAM_S: Final = 0.3


@dataclass(frozen=True, slots=True)
class GrpcAttack:
    """A call of a method, at a path that need not be its own."""

    method: MethodDescriptor
    path: str
    body: bytes
    metadata: tuple[tuple[str, str | bytes], ...]
    patience_s: float
    compression: grpc.Compression | None

    @classmethod
    def made(cls, rng: random.Random, known: requests.Known) -> GrpcAttack:
        """At random."""
        method = rng.choice(requests.METHODS)
        body = requests.message(rng, method, known).SerializeToString(deterministic=True)
        body = requests.spoiled(rng, body) if rng.random() < 0.4 else body
        path = requests.path_of(method) + ("" if rng.random() < 0.98 else rng.choice(("x", "/", "%00")))
        patience_s = rng.choice((0.001, _STREAM_S, HANG_S)) if not method.server_streaming else _STREAM_S
        return cls(method, path, body, _metadata(rng), patience_s, rng.choice((None, None, grpc.Compression.Gzip)))

    @property
    def asked(self) -> Asked:
        """What the verdict looks at."""
        return Asked(
            f"{self.path} {[name for name, _ in self.metadata]} {self.body[:2_000]!r}",
            self.method.name,
            self.path != requests.path_of(self.method),
            self.patience_s < HANG_S,
            requests.names_version(self.method, self.body),
        )


async def exchange(channel: Any, made: GrpcAttack) -> Got:
    """Make the call; how it ended, and all that was told until then."""
    began, told = time.monotonic(), b""
    settings: dict[str, Any] = {"timeout": made.patience_s, "metadata": made.metadata}
    try:
        if made.method.server_streaming:
            async for message in channel.unary_stream(made.path)(made.body, **settings):
                told += message
        else:
            told = await channel.unary_unary(made.path)(made.body, compression=made.compression, **settings)
    except grpc.aio.AioRpcError as error:
        if time.monotonic() - began >= HANG_S:
            return Got("grpc", "unknown", "hang")
        return Got("grpc", error.code().name.lower(), _reason(error), body=told)
    return Got("grpc", "", body=told)


def _reason(error: grpc.aio.AioRpcError) -> str:
    status, info = status_pb2.Status(), error_details_pb2.ErrorInfo()
    try:
        for name, value in error.trailing_metadata() or ():
            if name == "grpc-status-details-bin":
                status.ParseFromString(value)
    except DecodeError:
        return "details that are none"
    found = (detail for detail in status.details if detail.Unpack(info))
    return info.reason if next(found, None) is not None else ""


def _metadata(rng: random.Random) -> tuple[tuple[str, str | bytes], ...]:
    odd: tuple[tuple[str, str | bytes], ...] = (
        ("x-request-id", rng.choice(("mine", "a" * 300, "a b"))),
        ("x-hq-cluster", rng.choice(("default", "other", "../x"))),
        ("authorization", rng.choice(("Bearer x.y.z", "Bearer", "Basic eDp5"))),
        ("grpc-status-details-bin", rng.randbytes(20)),
        ("x-large", "a" * rng.choice((10, 20_000, 40_000))),
    )
    return tuple(rng.sample(odd, rng.choice((0, 0, 0, 1, 2))))
