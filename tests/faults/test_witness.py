"""A witness that shares no code with HQ: the package etcd3, in a process of its own with protobuf in pure Python.

It watches the prefix and reads it at the end; every write that HQ acknowledged must be there at its version, with the
very bytes that HQ's own store client reads.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys

import pytest

from hq.keys import HqKeys
from hqpb.v1 import service_pb2 as pb
from store.etcd import EtcdConfig, EtcdStore
from tests.support.etcd import VERSIONS, SharedEtcd
from tests.support.replicas import Replicas
from tests.support.sample_instances import Agent, instance

WITNESS = """
import base64, json, sys, etcd3
host, port, prefix = sys.argv[1], int(sys.argv[2]), sys.argv[3]
client = etcd3.client(host=host, port=port)
events, cancel = client.watch_prefix(prefix)
print("watching", flush=True)
last = int(sys.stdin.readline())
seen = []
for event in events:
    seen.append([event.key.decode(), base64.b64encode(event.value).decode(), event.mod_revision, type(event).__name__])
    if event.mod_revision > last:  # there always is a later one: a fence
        break
cancel()
held = {m.key.decode(): [base64.b64encode(v).decode(), m.mod_revision] for v, m in client.get_prefix(prefix)}
print(json.dumps({"seen": seen, "held": held}), flush=True)
"""

pytestmark = pytest.mark.parametrize("etcd_binary", VERSIONS[:2], indirect=True)


@pytest.mark.long
async def test_the_etcd3_witness_sees_every_acknowledged_write_with_the_same_bytes(
    replicas: Replicas, etcd: SharedEtcd
) -> None:
    host, _, port = etcd.endpoint.partition(":")
    witness = await asyncio.create_subprocess_exec(
        *(sys.executable, "-W", "ignore", "-c", WITNESS, host, port, etcd.prefix),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python"},
    )
    assert witness.stdin is not None
    assert witness.stdout is not None
    try:
        assert (await witness.stdout.readline()).strip() == b"watching"
        acknowledged = await write_many(await replicas.start([etcd.endpoint], etcd.prefix))
        last = max(version for versions in acknowledged.values() for version in versions)
        witness.stdin.write(f"{last}\n".encode())
        async with asyncio.timeout(30):
            told = json.loads(await witness.stdout.read())
    finally:
        if witness.returncode is None:
            witness.kill()
        await witness.wait()

    keys = HqKeys(etcd.prefix)
    puts = {(key, modified) for key, _, modified, kind in told["seen"] if kind == "PutEvent"}
    for name, versions in acknowledged.items():
        assert {(keys.spec(name).decode(), version) for version in versions} <= puts
    assert told["held"].items() >= (await held_by_hq(etcd.endpoint, keys)).items()


async def write_many(replica: object) -> dict[str, list[int]]:
    """The acknowledged versions of each instance's spec."""
    versions: dict[str, list[int]] = {}
    async with replica.stub() as stub:  # type: ignore[attr-defined]

        async def changes(name: str) -> None:
            created = await stub.CreateInstance(pb.CreateInstanceRequest(instance=instance(name)))
            changed = await stub.UpdateInstance(pb.UpdateInstanceRequest(instance=instance(name, text="new")))
            versions[name] = [created.instance.meta.version, changed.instance.meta.version]
            agent = Agent(stub, name)
            await agent.begin()
            await agent.report()

        await asyncio.gather(*(changes(f"i-{n}") for n in range(50)))
    return versions


async def held_by_hq(endpoint: str, keys: HqKeys) -> dict[str, list[object]]:
    """The instance records as HQ's own client reads them, in the witness' form."""
    store = EtcdStore(EtcdConfig((endpoint,)))
    try:
        page = await store.page(keys.prefix, keys.end, revision=0, limit=10_000)
    finally:
        await store.close()
    kinds = ("spec", "status", "secrets")
    kept = [r for r in page.records if keys.name(r.key).kind in kinds]
    assert len(kept) >= 100
    return {r.key.decode(): [base64.b64encode(r.value).decode(), r.modified] for r in kept}
