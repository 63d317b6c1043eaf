"""Messages of foreign services, made at run time out of .proto files: nothing generated lies in the tree."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import grpc_tools
from google.protobuf import any_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from grpc_tools import protoc

_WELL_KNOWN: Final = Path(grpc_tools.__file__).parent / "_proto"


def compiled(root: Path, *names: str) -> bytes:
    """A FileDescriptorSet of these files under `root`, with all that they import. Raises ValueError."""
    with tempfile.NamedTemporaryFile(suffix=".binpb") as out:
        order = ("protoc", f"-I{root}", f"-I{_WELL_KNOWN}", "--include_imports", f"--descriptor_set_out={out.name}")
        if protoc.main([*order, *names]):
            raise ValueError(f"protoc cannot compile {', '.join(names)} of {root}")
        return Path(out.name).read_bytes()


def learn(files: bytes) -> None:
    """Make a FileDescriptorSet known to protobuf's own pool: JSON of an Any is found only there."""
    pool = descriptor_pool.Default()  # it has Any already, from any_pb2
    for file in FileDescriptorSet.FromString(files).file:
        try:
            pool.FindFileByName(file.name)
        except KeyError:
            pool.AddSerializedFile(file.SerializeToString())


def message(name: str) -> Any:
    """The class of a message that was learnt, by its full name."""
    return message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(name))


def as_any(value: Any) -> any_pb2.Any:
    """The message in an envelope."""
    envelope = any_pb2.Any()
    envelope.Pack(value)
    return envelope
