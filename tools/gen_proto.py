"""Generate the Python code of proto/ beside the .proto files, or (--check) say whether it is up to date.

The generated code is committed, so that running HQ needs no compiler; `make check` compares.
"""

import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import grpc_tools
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto, MethodDescriptorProto
from grpc_tools import protoc

PROTO = Path(__file__).resolve().parent.parent / "proto"
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_stubs.py")


def main() -> None:
    if "--check" in sys.argv[1:]:
        check()
    else:
        replace()


def check() -> None:
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        wanted, found = read_generated(Path(folder)), read_generated(PROTO)
    stale = sorted(path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))
    if stale:
        sys.exit("generated code differs from proto/: " + ", ".join(stale) + "\nRun: make proto")
    print(f"generated code is up to date ({len(found)} files)")


def replace() -> None:
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        wanted = read_generated(Path(folder))
    found = read_generated(PROTO)
    for path in found.keys() - wanted.keys():
        (PROTO / path).unlink()
    for path in wanted:
        if wanted[path] != found.get(path):
            (PROTO / path).write_bytes(wanted[path])


def generate(target: Path) -> None:
    """Write messages and their types of all sources, and gRPC stubs of those that define a service."""
    run_protoc(f"--python_out={target}", f"--pyi_out={target}", *sources())
    with tempfile.NamedTemporaryFile() as described:
        run_protoc(f"--descriptor_set_out={described.name}", *sources())
        files = descriptor_pb2.FileDescriptorSet.FromString(Path(described.name).read_bytes()).file
    for file in files:
        if file.service:
            (target / _module(file.name, "_stubs.py")).write_text(stubs_of(file, _homes(files)))


def stubs_of(file: FileDescriptorProto, homes: dict[str, str]) -> str:
    """The source of a class for each service of a file; `homes`: the file of each message (decision 128)."""
    used = {homes[kind] for service in file.service for method in service.method for kind in _kinds(method)}
    modules = {name: _module(name, "_pb2") for name in sorted(used)}
    lines = [f'"""Calls of {file.name}, typed, over a channel. Made by tools/gen_proto.py."""', ""]
    lines += ["from __future__ import annotations", "", "from grpc import aio", ""]
    lines += [f"from {path.rpartition('/')[0].replace('/', '.')} import {Path(path).name}" for path in modules.values()]
    for service in file.service:
        path = f"{file.package}.{service.name}"
        lines += ["", "", f"class {service.name}Stub:", f'    """{path}."""', ""]
        lines += ["    def __init__(self, channel: aio.Channel) -> None:"]
        for method in service.method:
            lines += _method(f"/{path}/{method.name}", method, modules, homes)
    return "\n".join(lines) + "\n"


def _method(path: str, method: MethodDescriptorProto, modules: dict[str, str], homes: dict[str, str]) -> list[str]:
    ask, answer = (f"{Path(modules[homes[kind]]).name}.{kind.rpartition('.')[2]}" for kind in _kinds(method))
    ways = ["stream" if is_stream else "unary" for is_stream in (method.client_streaming, method.server_streaming)]
    return [
        f"        self.{method.name}: aio.{''.join(way.capitalize() for way in ways)}MultiCallable[",
        f"            {ask}, {answer}",
        f"        ] = channel.{'_'.join(ways)}(",
        f'            "{path}", {ask}.SerializeToString, {answer}.FromString',
        "        )",
    ]


def _kinds(method: MethodDescriptorProto) -> tuple[str, str]:
    return method.input_type, method.output_type


def _homes(files: Iterable[FileDescriptorProto]) -> dict[str, str]:
    return {f".{file.package}.{message.name}": file.name for file in files for message in file.message_type}


def _module(proto: str, ending: str) -> str:
    return proto.removesuffix(".proto") + ending


def sources() -> list[Path]:
    return sorted(path.relative_to(PROTO) for path in PROTO.rglob("*.proto"))


def run_protoc(*arguments: object) -> None:
    bundled = Path(grpc_tools.__file__).parent / "_proto"  # google/protobuf/*.proto
    if protoc.main(["protoc", f"--proto_path={PROTO}", f"--proto_path={bundled}", *map(str, arguments)]):
        sys.exit("protoc failed (see above)")


def read_generated(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for pattern in GENERATED for path in root.rglob(pattern)}


if __name__ == "__main__":
    main()
