"""Generate the Python code of proto/ beside the .proto files, or (--check) say whether it is up to date.

The code is committed, so that running HQ needs no compiler; `make check` compares. The types of messages are not
committed: only mypy, editors and users of the wheels read them. `make setup` (--types) and tools/packages.py make them
(decision 192).
"""

import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import grpc_tools
from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto, MethodDescriptorProto
from grpc_tools import protoc

PROTO = Path(__file__).resolve().parent.parent / "proto"
COMMITTED = ("*_pb2.py", "*_stubs.py")
TYPES = ("*_pb2.pyi",)


def main() -> None:
    if "--check" in sys.argv[1:]:
        check()
    elif "--types" in sys.argv[1:]:
        write_types()
    else:
        replace(generate, COMMITTED)
        write_types()


def check() -> None:
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        wanted, found = read_generated(Path(folder), COMMITTED), read_generated(PROTO, COMMITTED)
    stale = sorted(path for path in wanted.keys() | found.keys() if wanted.get(path) != found.get(path))
    if stale:
        sys.exit("generated code differs from proto/: " + ", ".join(stale) + "\nRun: make proto")
    print(f"generated code is up to date ({len(found)} files)")


def write_types() -> None:
    replace(lambda target: run_protoc(f"--pyi_out={target}", *sources()), TYPES)


def replace(make: Callable[[Path], None], patterns: tuple[str, ...]) -> None:
    """Bring the files of these patterns in proto/ to what `make` writes into a folder."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        wanted = read_generated(Path(folder), patterns)
    found = read_generated(PROTO, patterns)
    for path in found.keys() - wanted.keys():
        (PROTO / path).unlink()
    for path in wanted:
        if wanted[path] != found.get(path):
            (PROTO / path).write_bytes(wanted[path])


def generate(target: Path) -> None:
    """Write the messages of all sources, and gRPC stubs of those that define a service."""
    run_protoc(f"--python_out={target}", *sources())
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


def read_generated(root: Path, patterns: tuple[str, ...]) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for pattern in patterns for path in root.rglob(pattern)}


if __name__ == "__main__":
    main()
