"""Calls of hqpb/v1/service.proto, typed, over a channel. Made by tools/gen_proto.py."""

from __future__ import annotations

from grpc import aio

from hqpb.v1 import service_pb2


class InstanceServiceStub:
    """hq.v1.InstanceService."""

    def __init__(self, channel: aio.Channel) -> None:
        self.CreateInstance: aio.UnaryUnaryMultiCallable[
            service_pb2.CreateInstanceRequest, service_pb2.CreateInstanceResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/CreateInstance", service_pb2.CreateInstanceRequest.SerializeToString, service_pb2.CreateInstanceResponse.FromString
        )
        self.UpdateInstance: aio.UnaryUnaryMultiCallable[
            service_pb2.UpdateInstanceRequest, service_pb2.UpdateInstanceResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/UpdateInstance", service_pb2.UpdateInstanceRequest.SerializeToString, service_pb2.UpdateInstanceResponse.FromString
        )
        self.DeleteInstance: aio.UnaryUnaryMultiCallable[
            service_pb2.DeleteInstanceRequest, service_pb2.DeleteInstanceResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/DeleteInstance", service_pb2.DeleteInstanceRequest.SerializeToString, service_pb2.DeleteInstanceResponse.FromString
        )
        self.ApplyInstances: aio.UnaryUnaryMultiCallable[
            service_pb2.ApplyInstancesRequest, service_pb2.ApplyInstancesResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/ApplyInstances", service_pb2.ApplyInstancesRequest.SerializeToString, service_pb2.ApplyInstancesResponse.FromString
        )
        self.PutRevision: aio.UnaryUnaryMultiCallable[
            service_pb2.PutRevisionRequest, service_pb2.PutRevisionResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/PutRevision", service_pb2.PutRevisionRequest.SerializeToString, service_pb2.PutRevisionResponse.FromString
        )
        self.DeleteRevision: aio.UnaryUnaryMultiCallable[
            service_pb2.DeleteRevisionRequest, service_pb2.DeleteRevisionResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/DeleteRevision", service_pb2.DeleteRevisionRequest.SerializeToString, service_pb2.DeleteRevisionResponse.FromString
        )
        self.GetInstance: aio.UnaryUnaryMultiCallable[
            service_pb2.GetInstanceRequest, service_pb2.GetInstanceResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/GetInstance", service_pb2.GetInstanceRequest.SerializeToString, service_pb2.GetInstanceResponse.FromString
        )
        self.FindInstances: aio.UnaryUnaryMultiCallable[
            service_pb2.FindInstancesRequest, service_pb2.FindInstancesResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/FindInstances", service_pb2.FindInstancesRequest.SerializeToString, service_pb2.FindInstancesResponse.FromString
        )
        self.CountInstances: aio.UnaryUnaryMultiCallable[
            service_pb2.CountInstancesRequest, service_pb2.CountInstancesResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/CountInstances", service_pb2.CountInstancesRequest.SerializeToString, service_pb2.CountInstancesResponse.FromString
        )
        self.WatchInstances: aio.UnaryStreamMultiCallable[
            service_pb2.WatchInstancesRequest, service_pb2.WatchInstancesResponse
        ] = channel.unary_stream(
            "/hq.v1.InstanceService/WatchInstances", service_pb2.WatchInstancesRequest.SerializeToString, service_pb2.WatchInstancesResponse.FromString
        )
        self.GetRevision: aio.UnaryUnaryMultiCallable[
            service_pb2.GetRevisionRequest, service_pb2.GetRevisionResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/GetRevision", service_pb2.GetRevisionRequest.SerializeToString, service_pb2.GetRevisionResponse.FromString
        )
        self.BeginReporting: aio.UnaryUnaryMultiCallable[
            service_pb2.BeginReportingRequest, service_pb2.BeginReportingResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/BeginReporting", service_pb2.BeginReportingRequest.SerializeToString, service_pb2.BeginReportingResponse.FromString
        )
        self.BeginReportings: aio.UnaryUnaryMultiCallable[
            service_pb2.BeginReportingsRequest, service_pb2.BeginReportingsResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/BeginReportings", service_pb2.BeginReportingsRequest.SerializeToString, service_pb2.BeginReportingsResponse.FromString
        )
        self.ReportStatus: aio.UnaryUnaryMultiCallable[
            service_pb2.ReportStatusRequest, service_pb2.ReportStatusResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/ReportStatus", service_pb2.ReportStatusRequest.SerializeToString, service_pb2.ReportStatusResponse.FromString
        )
        self.ReportStatuses: aio.UnaryUnaryMultiCallable[
            service_pb2.ReportStatusesRequest, service_pb2.ReportStatusesResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/ReportStatuses", service_pb2.ReportStatusesRequest.SerializeToString, service_pb2.ReportStatusesResponse.FromString
        )
        self.ListSilences: aio.UnaryUnaryMultiCallable[
            service_pb2.ListSilencesRequest, service_pb2.ListSilencesResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/ListSilences", service_pb2.ListSilencesRequest.SerializeToString, service_pb2.ListSilencesResponse.FromString
        )
        self.ExplainInstance: aio.UnaryUnaryMultiCallable[
            service_pb2.ExplainInstanceRequest, service_pb2.ExplainInstanceResponse
        ] = channel.unary_unary(
            "/hq.v1.InstanceService/ExplainInstance", service_pb2.ExplainInstanceRequest.SerializeToString, service_pb2.ExplainInstanceResponse.FromString
        )
