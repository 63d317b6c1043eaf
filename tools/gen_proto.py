"""Generate the Python code of proto/ beside the .proto files, or (--check) say whether it is up to date.

The generated code is committed, so that running HQ needs no compiler; `make check` compares.
"""

import sys
import tempfile
from pathlib import Path

import grpc_tools
from grpc_tools import protoc

PROTO = Path(__file__).resolve().parent.parent / "proto"
GENERATED = ("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*_pb2_grpc.pyi")


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
    with_service = [path for path in sources() if "\nservice " in (PROTO / path).read_text()]
    run_protoc(f"--python_out={target}", f"--pyi_out={target}", *sources())
    if with_service:
        # protoc's own stubs come without types: calling them would not pass strict mypy.
        plugin = Path(sys.executable).parent / "protoc-gen-mypy_grpc"
        plugins = [f"--plugin=protoc-gen-mypy_grpc={plugin}", f"--mypy_grpc_out=quiet:{target}"]
        run_protoc(f"--grpc_python_out={target}", *plugins, *with_service)


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
