"""Calls of nannypb/v1/service.proto, typed, over a channel. Made by tools/gen_proto.py."""

from __future__ import annotations

from grpc import aio

from nannypb.v1 import service_pb2


class NannyServiceStub:
    """nanny.v1.NannyService."""

    def __init__(self, channel: aio.Channel) -> None:
        self.CreateService: aio.UnaryUnaryMultiCallable[
            service_pb2.CreateServiceRequest, service_pb2.CreateServiceResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/CreateService", service_pb2.CreateServiceRequest.SerializeToString, service_pb2.CreateServiceResponse.FromString
        )
        self.UpdateService: aio.UnaryUnaryMultiCallable[
            service_pb2.UpdateServiceRequest, service_pb2.UpdateServiceResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/UpdateService", service_pb2.UpdateServiceRequest.SerializeToString, service_pb2.UpdateServiceResponse.FromString
        )
        self.DeleteService: aio.UnaryUnaryMultiCallable[
            service_pb2.DeleteServiceRequest, service_pb2.DeleteServiceResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/DeleteService", service_pb2.DeleteServiceRequest.SerializeToString, service_pb2.DeleteServiceResponse.FromString
        )
        self.GetService: aio.UnaryUnaryMultiCallable[
            service_pb2.GetServiceRequest, service_pb2.GetServiceResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/GetService", service_pb2.GetServiceRequest.SerializeToString, service_pb2.GetServiceResponse.FromString
        )
        self.ListServices: aio.UnaryUnaryMultiCallable[
            service_pb2.ListServicesRequest, service_pb2.ListServicesResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/ListServices", service_pb2.ListServicesRequest.SerializeToString, service_pb2.ListServicesResponse.FromString
        )
        self.CreateSnapshot: aio.UnaryUnaryMultiCallable[
            service_pb2.CreateSnapshotRequest, service_pb2.CreateSnapshotResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/CreateSnapshot", service_pb2.CreateSnapshotRequest.SerializeToString, service_pb2.CreateSnapshotResponse.FromString
        )
        self.GetSnapshot: aio.UnaryUnaryMultiCallable[
            service_pb2.GetSnapshotRequest, service_pb2.GetSnapshotResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/GetSnapshot", service_pb2.GetSnapshotRequest.SerializeToString, service_pb2.GetSnapshotResponse.FromString
        )
        self.ListSnapshots: aio.UnaryUnaryMultiCallable[
            service_pb2.ListSnapshotsRequest, service_pb2.ListSnapshotsResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/ListSnapshots", service_pb2.ListSnapshotsRequest.SerializeToString, service_pb2.ListSnapshotsResponse.FromString
        )
        self.SetTarget: aio.UnaryUnaryMultiCallable[
            service_pb2.SetTargetRequest, service_pb2.SetTargetResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/SetTarget", service_pb2.SetTargetRequest.SerializeToString, service_pb2.SetTargetResponse.FromString
        )
        self.SetInstanceTarget: aio.UnaryUnaryMultiCallable[
            service_pb2.SetInstanceTargetRequest, service_pb2.SetInstanceTargetResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/SetInstanceTarget", service_pb2.SetInstanceTargetRequest.SerializeToString, service_pb2.SetInstanceTargetResponse.FromString
        )
        self.PauseActions: aio.UnaryUnaryMultiCallable[
            service_pb2.PauseActionsRequest, service_pb2.PauseActionsResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/PauseActions", service_pb2.PauseActionsRequest.SerializeToString, service_pb2.PauseActionsResponse.FromString
        )
        self.ResumeActions: aio.UnaryUnaryMultiCallable[
            service_pb2.ResumeActionsRequest, service_pb2.ResumeActionsResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/ResumeActions", service_pb2.ResumeActionsRequest.SerializeToString, service_pb2.ResumeActionsResponse.FromString
        )
        self.PromoteRollout: aio.UnaryUnaryMultiCallable[
            service_pb2.PromoteRolloutRequest, service_pb2.PromoteRolloutResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/PromoteRollout", service_pb2.PromoteRolloutRequest.SerializeToString, service_pb2.PromoteRolloutResponse.FromString
        )
        self.AbortRollout: aio.UnaryUnaryMultiCallable[
            service_pb2.AbortRolloutRequest, service_pb2.AbortRolloutResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/AbortRollout", service_pb2.AbortRolloutRequest.SerializeToString, service_pb2.AbortRolloutResponse.FromString
        )
        self.RestartService: aio.UnaryUnaryMultiCallable[
            service_pb2.RestartServiceRequest, service_pb2.RestartServiceResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/RestartService", service_pb2.RestartServiceRequest.SerializeToString, service_pb2.RestartServiceResponse.FromString
        )
        self.StopService: aio.UnaryUnaryMultiCallable[
            service_pb2.StopServiceRequest, service_pb2.StopServiceResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/StopService", service_pb2.StopServiceRequest.SerializeToString, service_pb2.StopServiceResponse.FromString
        )
        self.ListInstances: aio.UnaryUnaryMultiCallable[
            service_pb2.ListInstancesRequest, service_pb2.ListInstancesResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/ListInstances", service_pb2.ListInstancesRequest.SerializeToString, service_pb2.ListInstancesResponse.FromString
        )
        self.ListHistory: aio.UnaryUnaryMultiCallable[
            service_pb2.ListHistoryRequest, service_pb2.ListHistoryResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/ListHistory", service_pb2.ListHistoryRequest.SerializeToString, service_pb2.ListHistoryResponse.FromString
        )
        self.GetRollout: aio.UnaryUnaryMultiCallable[
            service_pb2.GetRolloutRequest, service_pb2.GetRolloutResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/GetRollout", service_pb2.GetRolloutRequest.SerializeToString, service_pb2.GetRolloutResponse.FromString
        )
        self.WatchService: aio.UnaryStreamMultiCallable[
            service_pb2.WatchServiceRequest, service_pb2.WatchServiceResponse
        ] = channel.unary_stream(
            "/nanny.v1.NannyService/WatchService", service_pb2.WatchServiceRequest.SerializeToString, service_pb2.WatchServiceResponse.FromString
        )
        self.GetControl: aio.UnaryUnaryMultiCallable[
            service_pb2.GetControlRequest, service_pb2.GetControlResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/GetControl", service_pb2.GetControlRequest.SerializeToString, service_pb2.GetControlResponse.FromString
        )
        self.SetControl: aio.UnaryUnaryMultiCallable[
            service_pb2.SetControlRequest, service_pb2.SetControlResponse
        ] = channel.unary_unary(
            "/nanny.v1.NannyService/SetControl", service_pb2.SetControlRequest.SerializeToString, service_pb2.SetControlResponse.FromString
        )
