"""Calls of cmspb/v1/record.proto, typed, over a channel. Made by tools/gen_proto.py."""

from __future__ import annotations

from grpc import aio

from cmspb.v1 import record_pb2


class LedgerServiceStub:
    """cms.v1.LedgerService."""

    def __init__(self, channel: aio.Channel) -> None:
        self.FollowLedger: aio.UnaryStreamMultiCallable[
            record_pb2.FollowLedgerRequest, record_pb2.FollowLedgerResponse
        ] = channel.unary_stream(
            "/cms.v1.LedgerService/FollowLedger", record_pb2.FollowLedgerRequest.SerializeToString, record_pb2.FollowLedgerResponse.FromString
        )
