"""Calls of historypb/v1/history.proto, typed, over a channel. Made by tools/gen_proto.py."""

from __future__ import annotations

from grpc import aio

from historypb.v1 import history_pb2


class HistoryServiceStub:
    """history.v1.HistoryService."""

    def __init__(self, channel: aio.Channel) -> None:
        self.ListEvents: aio.UnaryUnaryMultiCallable[
            history_pb2.ListEventsRequest, history_pb2.ListEventsResponse
        ] = channel.unary_unary(
            "/history.v1.HistoryService/ListEvents", history_pb2.ListEventsRequest.SerializeToString, history_pb2.ListEventsResponse.FromString
        )
        self.FindInstancesAt: aio.UnaryUnaryMultiCallable[
            history_pb2.FindInstancesAtRequest, history_pb2.FindInstancesAtResponse
        ] = channel.unary_unary(
            "/history.v1.HistoryService/FindInstancesAt", history_pb2.FindInstancesAtRequest.SerializeToString, history_pb2.FindInstancesAtResponse.FromString
        )
        self.CountInstancesOverTime: aio.UnaryUnaryMultiCallable[
            history_pb2.CountInstancesOverTimeRequest, history_pb2.CountInstancesOverTimeResponse
        ] = channel.unary_unary(
            "/history.v1.HistoryService/CountInstancesOverTime", history_pb2.CountInstancesOverTimeRequest.SerializeToString, history_pb2.CountInstancesOverTimeResponse.FromString
        )
        self.ListDecisions: aio.UnaryUnaryMultiCallable[
            history_pb2.ListDecisionsRequest, history_pb2.ListDecisionsResponse
        ] = channel.unary_unary(
            "/history.v1.HistoryService/ListDecisions", history_pb2.ListDecisionsRequest.SerializeToString, history_pb2.ListDecisionsResponse.FromString
        )
        self.ReadLedger: aio.UnaryStreamMultiCallable[
            history_pb2.ReadLedgerRequest, history_pb2.ReadLedgerResponse
        ] = channel.unary_stream(
            "/history.v1.HistoryService/ReadLedger", history_pb2.ReadLedgerRequest.SerializeToString, history_pb2.ReadLedgerResponse.FromString
        )
        self.ReadFuses: aio.UnaryStreamMultiCallable[
            history_pb2.ReadFusesRequest, history_pb2.ReadFusesResponse
        ] = channel.unary_stream(
            "/history.v1.HistoryService/ReadFuses", history_pb2.ReadFusesRequest.SerializeToString, history_pb2.ReadFusesResponse.FromString
        )
