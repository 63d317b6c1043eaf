"""gRPC's Python client: calls a target again and again, and prints who answers: `ok` and the answer, or `error`.

python -m tests.judges.xds_caller TARGET INTERVAL_MS
"""

from __future__ import annotations

import sys
import time

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.wrappers_pb2 import StringValue


def main() -> None:
    """Until it is ended."""
    target, interval_ms = sys.argv[1:]
    with grpc.insecure_channel(target) as channel:
        who = channel.unary_unary(
            "/judged.Who/Who", request_serializer=Empty.SerializeToString, response_deserializer=StringValue.FromString
        )
        while True:
            try:
                print("ok", who(Empty(), timeout=20).value, flush=True)
            except grpc.RpcError as error:
                print("error", str(error.details()).replace("\n", " "), flush=True)
            time.sleep(int(interval_ms) / 1000)


if __name__ == "__main__":
    main()
