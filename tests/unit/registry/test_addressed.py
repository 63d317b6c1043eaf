"""A caller may name the cluster that a call is meant for."""

from __future__ import annotations

from dataclasses import dataclass

from hq.api.admin_api import AdminApi
from hq.api.cluster_check import with_cluster_check
from hq.api.instance_api import InstanceApi
from hqapi.requests import CLUSTER_HEADER
from serving.calls.methods import Call, UnaryMethod, maybe_await
from serving.errors import InvalidRequest, ServiceError
from tests.support.in_process_replica import running


@dataclass(frozen=True)
class Meaning(Call):
    """A call whose headers name the clusters `names`."""

    names: tuple[str, ...] = ()

    def all_headers(self, name: str) -> tuple[str, ...]:
        return self.names if name == CLUSTER_HEADER else ()


async def refused_by(cluster: str, *meant: str) -> set[str]:
    """The calls, with empty requests, that a replica of `cluster` refuses if its caller names the clusters `meant`."""
    refused = set()
    async with running() as registry:
        for method in with_cluster_check([*InstanceApi(registry, 0).methods(), *AdminApi(registry).methods()], cluster):
            if isinstance(method, UnaryMethod):
                try:
                    await maybe_await(method.run(method.parse(b""), Meaning(names=meant)))
                except InvalidRequest as error:
                    if error.violations[0].field == CLUSTER_HEADER:
                        refused.add(method.path.rpartition("/")[2])
                except ServiceError:
                    pass
    return refused


ORDERS = {
    *("CreateInstance", "UpdateInstance", "DeleteInstance", "ApplyInstances", "PutRevision", "DeleteRevision"),
    *("ReleaseGuard", "ForceGuard", "SuspendNode", "ResumeNode", "ConfirmEpoch"),
}


async def test_writes_and_orders_that_are_meant_for_another_cluster_are_refused() -> None:
    assert await refused_by("west", "east") == ORDERS


async def test_a_cluster_accepts_calls_meant_for_it() -> None:
    assert await refused_by("east", "east") == await refused_by("east", "east", "east") == set()


async def test_orders_that_name_two_clusters_are_refused() -> None:
    assert await refused_by("east", "east", "west") == await refused_by("east", "west", "east") == ORDERS
