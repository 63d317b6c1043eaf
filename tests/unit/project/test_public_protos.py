"""The public messages, from which other teams generate clients, hold nothing that a server keeps for itself."""

from __future__ import annotations

import ast
import asyncio
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pb2 import FileDescriptorProto

import hqpb.v1.service_pb2  # noqa: F401  # registers both files
from tools.public_protos import PROTO, public_files

ROOT = PROTO.parent
PUBLIC = [
    "cmspb/v1/cms.proto",
    "cmspb/v1/record.proto",
    "historypb/v1/history.proto",
    "hqpb/v1/admin.proto",
    "hqpb/v1/instance.proto",
    "hqpb/v1/service.proto",
    "nannypb/v1/service.proto",
    "wallepb/v1/host.proto",
    "wallepb/v1/project.proto",
    "wallepb/v1/service.proto",
]
_GO = ["hqpb/v1/instance.proto", "hqpb/v1/service.proto"]  # those of clients/go/buf.gen.yaml
_MADE = shutil.ignore_patterns("node_modules", "dist", "gen")


def test_messages_of_calls_are_public_and_stored_ones_are_not() -> None:
    assert public_files(PROTO) == PUBLIC


@pytest.mark.parametrize("name", _GO)
def test_the_go_clients_messages_are_those_of_the_proto_files(name: str) -> None:
    """If not, run `cd clients/go && buf generate`, with the two plugins of buf.gen.yaml on PATH."""
    written = (ROOT / "clients/go" / name).with_suffix(".pb.go").read_text()
    literal = re.search(r'_rawDesc = "" \+\n((?:\t".*"(?: \+)?\n)+)', written)
    assert literal is not None
    lines = re.findall(r'^\t(".*")(?: \+)?$', literal[1], re.MULTILINE)
    made = FileDescriptorProto.FromString(b"".join(ast.literal_eval("b" + line) for line in lines))
    own = FileDescriptorProto()
    descriptor_pool.Default().FindFileByName(name).CopyToProto(own)
    assert without_json_names(made) == without_json_names(own)


def without_json_names(file: FileDescriptorProto) -> FileDescriptorProto:
    """Clear json_name everywhere: buf always writes it, protoc only if it is not the default."""
    messages = list(file.message_type)
    while messages:
        message = messages.pop()
        messages += message.nested_type
        for field in message.field:
            field.ClearField("json_name")
    return file


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_file_names_its_package_in_go_and_java(name: str) -> None:
    text = (PROTO / name).read_text()
    assert re.search(r'^option go_package = ".+";$', text, re.MULTILINE)
    assert re.search(r'^option java_package = ".+";$', text, re.MULTILINE)


def copy_protos(target: Path) -> Path:
    subprocess.run([sys.executable, "-m", "tools.public_protos", str(target)], cwd=ROOT, check=True)
    return target


async def run(*command: str, cwd: Path) -> None:
    process = await asyncio.create_subprocess_exec(*command, cwd=cwd)
    assert await process.wait() == 0, command


def generated(folder: Path, suffix: str) -> list[str]:
    return sorted(path.relative_to(folder).as_posix().removesuffix(suffix) for path in folder.rglob(f"*{suffix}"))


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("go") is None, reason="there is no go on PATH: install Go (https://go.dev/dl)")
async def test_go_is_generated_from_the_public_files_and_compiles(tmp_path: Path) -> None:
    protos, module = copy_protos(tmp_path / "protos"), tmp_path / "module"
    module.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(ROOT / "clients" / "go" / name, module / name)
    plugin = tmp_path / "protoc-gen-go"
    await run("go", "build", "-o", str(plugin), "google.golang.org/protobuf/cmd/protoc-gen-go", cwd=module)
    template = f"version: v2\nplugins: [{{local: {plugin}, out: {module}, opt: module=example.com/hq}}]\n"
    (tmp_path / "buf.gen.yaml").write_text(template)
    await run(str(Path(sys.executable).with_name("buf")), "generate", str(protos), cwd=tmp_path)

    assert generated(module, ".pb.go") == [name.removesuffix(".proto") for name in PUBLIC]
    await run("go", "build", "./...", cwd=module)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm on PATH: install Node.js 20 or newer")
async def test_typescript_is_generated_from_the_public_files_and_compiles(tmp_path: Path) -> None:
    protos, client = copy_protos(tmp_path / "proto"), tmp_path / "clients" / "typescript"
    shutil.copytree(ROOT / "clients" / "typescript", client, ignore=_MADE)
    template = (client / "buf.gen.yaml").read_text()
    (client / "buf.gen.yaml").write_text(re.sub(r"    paths: .*\n", "", template))
    await run("npm", "ci", "--no-audit", "--no-fund", cwd=client)
    await run("npm", "run", "build", cwd=client)

    assert protos == tmp_path / "proto"
    assert generated(client / "src" / "gen", "_pb.ts") == [name.removesuffix(".proto") for name in PUBLIC]
