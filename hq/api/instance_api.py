"""hq.v1.InstanceService as a table of methods: how each request is read, which rule it is under, who answers it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from hq.api.agents import Agents
from hq.api.edits import Edits
from hq.api.lookups import Lookups, parsed_find, parsed_get
from hq.registry.registry import Registry
from hqapi.reach import BEGUN, FETCHED, FILTER, FOUND, INSTANCE, INSTANCES, OWN_NODE, REPORTED
from hqapi.requests import subject
from hqapi.rules import ATTEND, ATTEND_FETCH, BEGIN, FETCH, REPORT, UPDATE, UPLOAD
from hqpb.v1 import service_pb2
from serving.calls.methods import Answer, Call, Method, ServiceTable
from serving.errors import invalid
from serving.rights.rules import READ, Rule

_SERVICE = ServiceTable("hq.v1.InstanceService", subject)


class InstanceApi:
    """The service. `methods` is what a transport serves."""

    def __init__(self, registry: Registry, json_bytes: int) -> None:
        self._lookups = Lookups(registry, json_bytes)
        self._edits = Edits(registry)
        self._agents = Agents(registry)

    def methods(self) -> list[Method]:
        """All calls. GetInstance and FindInstances remember the requests that repeat."""
        edits, lookups = self._edits, self._lookups
        return [
            _SERVICE.unary(service_pb2.CreateInstanceRequest, edits.create, UPLOAD, INSTANCE),
            _SERVICE.unary(service_pb2.UpdateInstanceRequest, edits.update, UPDATE, INSTANCE),
            _SERVICE.unary(service_pb2.DeleteInstanceRequest, edits.delete, UPLOAD, INSTANCE),
            _SERVICE.unary(service_pb2.ApplyInstancesRequest, edits.apply, UPLOAD, INSTANCES),
            _SERVICE.unary(service_pb2.PutRevisionRequest, edits.put_revision, UPLOAD, INSTANCE),
            _SERVICE.unary(service_pb2.DeleteRevisionRequest, edits.delete_revision, UPLOAD, INSTANCE),
            _SERVICE.memoized_unary(service_pb2.GetInstanceRequest, parsed_get, lookups.get, READ, INSTANCE),
            _SERVICE.memoized_unary(service_pb2.FindInstancesRequest, parsed_find, lookups.find, READ, FOUND),
            _SERVICE.unary(service_pb2.CountInstancesRequest, lookups.count, READ, FILTER),
            _SERVICE.streaming(service_pb2.WatchInstancesRequest, lookups.watch, READ, FILTER),
            _SERVICE.unary(service_pb2.ListSilencesRequest, lookups.silences, READ, FILTER),
            _SERVICE.unary(service_pb2.ExplainInstanceRequest, lookups.explain, READ, INSTANCE),
            *self._of_agents(FETCH),
        ]

    def agents_methods(self) -> list[Method]:
        """Return the methods of the agents' listener: their own calls, watches of nodes, and single instances."""
        return [
            *self._of_agents(ATTEND_FETCH),
            _SERVICE.memoized_unary(service_pb2.GetInstanceRequest, parsed_get, self._lookups.get, ATTEND, INSTANCE),
            _SERVICE.streaming(service_pb2.WatchInstancesRequest, self._watch_node, ATTEND, FILTER),
        ]

    def _of_agents(self, fetch: Rule) -> list[Method]:
        agents = self._agents
        return [
            _SERVICE.unary(service_pb2.GetRevisionRequest, agents.get_revision, fetch, FETCHED),
            _SERVICE.unary(service_pb2.BeginReportingRequest, agents.begin, BEGIN, OWN_NODE),
            _SERVICE.unary(service_pb2.BeginReportingsRequest, agents.begin_many, BEGIN, BEGUN),
            _SERVICE.unary(service_pb2.ReportStatusRequest, agents.report, REPORT, OWN_NODE, agents.turned_away),
            _SERVICE.unary(service_pb2.ReportStatusesRequest, agents.report_many, REPORT, REPORTED, agents.turned_away),
        ]

    def _watch_node(self, request: service_pb2.WatchInstancesRequest, call: Call) -> AsyncIterator[Answer]:
        if not request.filter.node_name:
            words = "name a node: this listener serves agents only; other watches go to --grpc"
            raise invalid("filter.node_name", words)
        return self._lookups.watch(request, call)
