"""Calls of hqpb/v1/admin.proto, typed, over a channel. Made by tools/gen_proto.py."""

from __future__ import annotations

from grpc import aio

from hqpb.v1 import admin_pb2


class AdminServiceStub:
    """hq.v1.AdminService."""

    def __init__(self, channel: aio.Channel) -> None:
        self.GetGuard: aio.UnaryUnaryMultiCallable[
            admin_pb2.GetGuardRequest, admin_pb2.GetGuardResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/GetGuard", admin_pb2.GetGuardRequest.SerializeToString, admin_pb2.GetGuardResponse.FromString
        )
        self.ReleaseGuard: aio.UnaryUnaryMultiCallable[
            admin_pb2.ReleaseGuardRequest, admin_pb2.ReleaseGuardResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/ReleaseGuard", admin_pb2.ReleaseGuardRequest.SerializeToString, admin_pb2.ReleaseGuardResponse.FromString
        )
        self.ForceGuard: aio.UnaryUnaryMultiCallable[
            admin_pb2.ForceGuardRequest, admin_pb2.ForceGuardResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/ForceGuard", admin_pb2.ForceGuardRequest.SerializeToString, admin_pb2.ForceGuardResponse.FromString
        )
        self.ListReplicas: aio.UnaryUnaryMultiCallable[
            admin_pb2.ListReplicasRequest, admin_pb2.ListReplicasResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/ListReplicas", admin_pb2.ListReplicasRequest.SerializeToString, admin_pb2.ListReplicasResponse.FromString
        )
        self.ListQuarantine: aio.UnaryUnaryMultiCallable[
            admin_pb2.ListQuarantineRequest, admin_pb2.ListQuarantineResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/ListQuarantine", admin_pb2.ListQuarantineRequest.SerializeToString, admin_pb2.ListQuarantineResponse.FromString
        )
        self.ListTransitions: aio.UnaryUnaryMultiCallable[
            admin_pb2.ListTransitionsRequest, admin_pb2.ListTransitionsResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/ListTransitions", admin_pb2.ListTransitionsRequest.SerializeToString, admin_pb2.ListTransitionsResponse.FromString
        )
        self.SuspendNode: aio.UnaryUnaryMultiCallable[
            admin_pb2.SuspendNodeRequest, admin_pb2.SuspendNodeResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/SuspendNode", admin_pb2.SuspendNodeRequest.SerializeToString, admin_pb2.SuspendNodeResponse.FromString
        )
        self.ResumeNode: aio.UnaryUnaryMultiCallable[
            admin_pb2.ResumeNodeRequest, admin_pb2.ResumeNodeResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/ResumeNode", admin_pb2.ResumeNodeRequest.SerializeToString, admin_pb2.ResumeNodeResponse.FromString
        )
        self.ListSuspensions: aio.UnaryUnaryMultiCallable[
            admin_pb2.ListSuspensionsRequest, admin_pb2.ListSuspensionsResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/ListSuspensions", admin_pb2.ListSuspensionsRequest.SerializeToString, admin_pb2.ListSuspensionsResponse.FromString
        )
        self.GetEpoch: aio.UnaryUnaryMultiCallable[
            admin_pb2.GetEpochRequest, admin_pb2.GetEpochResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/GetEpoch", admin_pb2.GetEpochRequest.SerializeToString, admin_pb2.GetEpochResponse.FromString
        )
        self.ConfirmEpoch: aio.UnaryUnaryMultiCallable[
            admin_pb2.ConfirmEpochRequest, admin_pb2.ConfirmEpochResponse
        ] = channel.unary_unary(
            "/hq.v1.AdminService/ConfirmEpoch", admin_pb2.ConfirmEpochRequest.SerializeToString, admin_pb2.ConfirmEpochResponse.FromString
        )
