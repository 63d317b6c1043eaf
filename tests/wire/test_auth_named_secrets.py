"""Which secrets an instance may be given: its service's own, and those that the writer's grant lists."""

from __future__ import annotations

from typing import Any

import pytest

from hqpb.v1 import instance_pb2
from hqpb.v1 import service_pb2 as pb
from tests.support.rights_requests import create, instance
from tests.support.secured import Secured, Served
from tests.wire.conftest import As

POLICY = """
roles:
  uploader:
    - identities: [web-uploader]
      services: [web]
    - identities: [sharing]
      services: [web, mail]
      secrets: ["vault:shared/*", "*:ca"]
  admin:
    - identities: [admin]
"""


@pytest.fixture
def files(files: Secured) -> Secured:
    files.policy.write_text(POLICY)
    return files


def naming(id_: str, key: str = "", provider: str = "vault") -> instance_pb2.Instance:
    made = instance("site-1")
    secret = made.spec.revision[0].secret[0]
    secret.id, secret.key, secret.provider = id_, key, provider
    return made


async def created(as_: As, caller: str, wanted: instance_pb2.Instance) -> str:
    request = pb.CreateInstanceRequest(instance=wanted, validate_only=True)
    code, words = await as_(caller).refusal("CreateInstance", request)
    assert code == "OK" or "secret 'db' of instance site-1 is not one that service web may name" in words
    return code


OWN = [("web", ""), ("web", "password"), ("web/db", ""), ("web/db", "a/b")]
FOREIGN = [
    *(("mail/db", ""), ("mail", "db"), ("web-2", "x"), ("webmail/db", ""), ("we", "b")),
    *(("web/../mail/db", ""), ("web/..", "mail"), ("web", "../mail"), ("web/./db", ""), ("web//db", ""), ("web/", "")),
    *(("/web/db", ""), ("web/db", "."), ("web", "a/"), ("./web", "")),
]
SHARED = [("shared/db", "", "vault"), ("shared", "db", "vault"), ("shared/a/b", "c", "vault"), ("ca", "", "files")]
NOT_SHARED = [
    ("shared/db", "", "files"),
    ("shared", "", "vault"),
    ("ca", "x", "vault"),
    ("shared/../mail", "", "vault"),
]


@pytest.mark.parametrize("caller", ["web-uploader", "sharing", "admin"])
async def test_a_service_may_name_its_own_secrets_and_no_path_that_leads_elsewhere(as_: As, caller: str) -> None:
    for id_, key in OWN:
        assert await created(as_, caller, naming(id_, key)) == "OK", (id_, key)
    for id_, key in FOREIGN:
        assert await created(as_, caller, naming(id_, key)) == "PERMISSION_DENIED", (id_, key)


async def test_a_grant_lists_what_else_its_services_may_name(as_: As) -> None:
    for where in SHARED:
        assert await created(as_, "sharing", naming(*where)) == "OK", where
        assert await created(as_, "web-uploader", naming(*where)) == "PERMISSION_DENIED", where
    for where in NOT_SHARED:
        assert await created(as_, "sharing", naming(*where)) == "PERMISSION_DENIED", where


async def test_every_way_to_write_a_descriptor_is_checked(as_: As) -> None:
    uploader, stolen = as_("web-uploader"), naming("mail/db")
    await uploader.call("CreateInstance", create("site-1"))
    update = pb.UpdateInstanceRequest(instance=stolen)
    only_secret = pb.UpdateInstanceRequest(instance=stolen)
    only_secret.update_mask.paths.append("spec.revision.secret")
    put = pb.PutRevisionRequest(instance_id="site-1", revision=stolen.spec.revision[0])
    for name, request in (("UpdateInstance", update), ("UpdateInstance", only_secret), ("PutRevision", put)):
        assert (await uploader.refusal(name, request))[0] == "PERMISSION_DENIED", name
    applied = await uploader.call("ApplyInstances", pb.ApplyInstancesRequest(instance=[stolen]))
    assert applied.result[0].error.reason == "PERMISSION_DENIED"
    kept = await uploader.call("GetRevision", pb.GetRevisionRequest(instance_id="site-1"))
    assert [secret.id for secret in kept.revision[0].secret] == [instance("site-1").spec.revision[0].secret[0].id]
    assert kept.service_id == "web"


async def test_an_old_secret_descriptor_stays_until_its_revision_names_another(
    replica: Served, files: Secured, as_: As
) -> None:
    await as_("sharing").call("CreateInstance", pb.CreateInstanceRequest(instance=naming("shared/db")))
    uploader: Any = as_("web-uploader")
    same = naming("shared/db")
    same.meta.labels["tier"] = "front"
    await uploader.call("UpdateInstance", pb.UpdateInstanceRequest(instance=same))
    await uploader.call("UpdateInstance", pb.UpdateInstanceRequest(instance=instance("site-1", revisions=())))
    again = pb.UpdateInstanceRequest(instance=same)
    assert (await uploader.refusal("UpdateInstance", again))[0] == "PERMISSION_DENIED", "it was taken out meanwhile"
