"""gRPC's Python client: calls a target again and again, and prints who answers: `ok` and the answer, or `error`.

python -m tests.judges.xds_caller TARGET INTERVAL_MS [anew]

`anew`: each call over a channel of its own: the resolver of `dns:///` asks again only when a connection fails.
"""

from __future__ import annotations

import sys
import time

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue


def main() -> None:
    """Until it is ended."""
    target, interval_ms, *anew = sys.argv[1:]
    channel = _channel(target)
    while True:
        if anew:
            channel.close()
            channel = _channel(target)
        who = channel.unary_unary(
            "/judged.Who/Who", request_serializer=Empty.SerializeToString, response_deserializer=StringValue.FromString
        )
        try:
            print("ok", who(Empty(), timeout=20).value, flush=True)
        except grpc.RpcError as error:
            print("error", str(error.details()).replace("\n", " "), flush=True)
        time.sleep(int(interval_ms) / 1000)


def _channel(target: str) -> grpc.Channel:
    return grpc.insecure_channel(target, [("grpc.use_local_subchannel_pool", 1)])


if __name__ == "__main__":
    main()
