"""A replica that asks who calls, as a target: its files, who attacks it, and what must be as it was afterwards."""

from __future__ import annotations

import asyncio
import json
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.fuzz.callers import AGENT, KEEPER, MARK, POLICY, SECRET, Caller
from tests.fuzz.forged import Forger
from tests.support.secured import Caller as Calling
from tests.support.secured import Secured, secure_channel
from tests.support.token_issuer import Issuer

_START_S: Final = 60.0
_GOOD_FOR_S: Final = 7_200.0
# Certificates of the right CA that name nobody, or somebody else's.
_STRANGERS: Final = (
    (),
    ("spiffe://hq.test/agent/node-1", "spiffe://hq.test/agent/node-9"),
    ("spiffe://elsewhere.test/agent/node-9",),
    ("spiffe://hq.test/agent/node-1/../node-9",),
    ("spiffe://hq.test/agent/node-9?",),
    ("https://hq.test/agent/node-9",),
    ("spiffe://HQ.test/agent/node-9",),
)


@dataclass(slots=True)
class Guarded:
    """The files in a directory; `flags` for `hq serve`."""

    directory: Path
    files: Secured = field(init=False)
    issuers: tuple[Issuer, Issuer] = field(init=False)

    def __post_init__(self) -> None:
        self.files = Secured(self.directory)
        self.files.policy.write_text(POLICY)
        first = self.files.issuer
        self.issuers = (first, Issuer(self.directory / "second", "key-2", use_rsa=True))
        first.publish(*self.issuers)

    @property
    def flags(self) -> list[str]:
        return self.files.flags(self.files.with_certificates())

    @property
    def tls(self) -> ssl.SSLContext:
        """For raw HTTP."""
        return ssl.create_default_context(cafile=str(self.files.authority.cert))

    def forger(self, rng: random.Random) -> Forger:
        return Forger(self.issuers, rng)

    def token(self, name: str) -> str:
        return self.files.issuer.token(name, good_for_s=_GOOD_FOR_S)

    @asynccontextmanager
    async def channels(self, certified: str) -> AsyncIterator[list[tuple[grpc.aio.Channel, Caller | None]]]:
        """Connections to the address for certificates, and who each is; None: nobody."""
        found: list[tuple[grpc.aio.Channel, Caller | None]] = []
        named: list[tuple[tuple[str, ...], Caller | None]] = [((AGENT.name,), AGENT), *((s, None) for s in _STRANGERS)]
        for number, (uris, caller) in enumerate(named):
            shown = self.files.authority.issue(f"caller-{number}", uris)
            found.append((secure_channel(certified, self.files.authority, shown), caller))
        try:
            yield found
        finally:
            await asyncio.gather(*(channel.close() for channel, _ in found))

    @asynccontextmanager
    async def keeper(self, address: str) -> AsyncIterator[Calling]:
        """Whoever may do everything; returns when it is served."""
        async with secure_channel(address, self.files.authority) as channel:
            calling = Calling(channel, self.token(KEEPER))
            async with asyncio.timeout(_START_S):
                while (await calling.refusal("GetInstance", pb.GetInstanceRequest(id="x")))[0] == "UNAVAILABLE":
                    await asyncio.sleep(0.05)
            yield calling

    async def populate(self, keeper: Calling) -> None:
        """Instances within reach of the attackers, and one that is not."""
        for name in ("fuzz-1", "fuzz-2", "fuzz-11"):
            await keeper.call("CreateInstance", pb.CreateInstanceRequest(instance=_instance(name, "svc", "node-1")))
        await keeper.call("CreateInstance", pb.CreateInstanceRequest(instance=_instance("vault-1", "vault", "node-9")))

    async def out_of_reach(self, keeper: Calling) -> tuple[Any, ...]:
        """What attackers cannot have changed: the instance of `vault` but for its status, with its secrets."""
        found = (await keeper.call("GetInstance", pb.GetInstanceRequest(id="vault-1"))).instance
        told = await keeper.call("GetRevision", pb.GetRevisionRequest(instance_id="vault-1"))
        revisions = sorted(revision.SerializeToString(deterministic=True) for revision in told.revision)
        spec = found.spec.SerializeToString(deterministic=True)
        return found.meta.uid, found.meta.service_id, dict(found.meta.labels), found.meta.version, spec, revisions


def _instance(name: str, service: str, node: str) -> instance_pb2.Instance:
    made = instance_pb2.Instance()
    made.meta.id, made.meta.service_id, made.spec.node_name = name, service, node
    if service == "vault":
        made.meta.labels["mark"] = MARK
    revision = made.spec.revision.add(id="r1", target=instance_pb2.REVISION_TARGET_READY)
    revision.secret.add(name="db", provider="vault", id=f"{service}/{name}-{SECRET}", environment_variable="PASSWORD")
    return made


# --- files that cannot be used --------------------------------------------------------------------------------------


def broken(rng: random.Random, name: str, good: bytes) -> bytes:
    """Contents in place of a file's that nobody can take for a new version of it."""
    cut = good[: rng.randrange(len(good) // 2)]
    common = (
        b"",
        b"\0",
        rng.randbytes(rng.randrange(1, 2_000)) + b"\xff\0",
        b"[" * 1_000,
        b"null",
        b"{}",
        b"[]",
        b"\xff" + good,
    )
    if name == "policy":
        odd = (b"roles: {king: []}", b"roles: [", b"roles: 5", good + b"\nx: 1", good + b"\n  reader: 1: 2")
        return rng.choice(common + odd)
    if name == "jwks":
        key = json.loads(good)["keys"][0]
        wrong = [{**key, "d": "AAAA"}, {**key, "kid": 5}, {**key, "x": "AAAA"}, {**key, "kty": "oct", "k": "AAAA"}, 5]
        sets = [json.dumps({"keys": [one]}).encode() for one in wrong] + [b'{"keys": []}', b'{"keys": {}}']
        return rng.choice((*common, cut, *sets))
    return rng.choice((*common, cut))
