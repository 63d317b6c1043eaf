"""A caller may say which cluster it means."""

from __future__ import annotations

from hq.api.addressed import addressed
from hq.api.admin_api import AdminApi
from hq.api.instance_api import InstanceApi
from serving.calls.methods import CLUSTER_HEADER, Call, Unary
from serving.errors import HqError, InvalidRequest
from tests.support.running import running


class Meaning(Call):
    """A call whose header names a cluster."""

    def header(self, name: str) -> str:
        return "east" if name == CLUSTER_HEADER else ""


async def refused_by(cluster: str) -> set[str]:
    """The calls that a replica of this cluster does not take because east is meant. All requests are empty."""
    refused = set()
    async with running() as registry:
        for method in addressed([*InstanceApi(registry, 0).methods(), *AdminApi(registry).methods()], cluster):
            if isinstance(method, Unary):
                try:
                    await method.run(method.parse(b""), Meaning())
                except InvalidRequest as error:
                    if error.violations[0].field == CLUSTER_HEADER:
                        refused.add(method.path.rpartition("/")[2])
                except HqError:
                    pass
    return refused


async def test_writes_and_orders_that_are_meant_for_another_cluster_are_refused() -> None:
    assert await refused_by("west") == {
        *("CreateInstance", "UpdateInstance", "DeleteInstance", "ApplyInstances", "PutRevision", "DeleteRevision"),
        *("ReleaseGuard", "ForceGuard", "SuspendNode", "ResumeNode"),
    }


async def test_a_cluster_takes_what_is_meant_for_it() -> None:
    assert await refused_by("east") == set()
