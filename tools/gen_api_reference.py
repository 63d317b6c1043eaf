"""Write docs/api.md from the comments in proto/hqpb/v1/, or (--check) say whether it is up to date."""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from tools.gen_proto import PROTO, run_protoc

PAGE = PROTO.parent / "docs" / "api.md"
FILES = ("hqpb/v1/service.proto", "hqpb/v1/admin.proto", "hqpb/v1/instance.proto")
HEAD = """# API reference

Made from the comments in `proto/hqpb/v1/` by `make proto`. Every call is there over gRPC and, on the HTTP port, as
`POST /hq.v1.<Service>/<Call>` in the Connect protocol (`application/json` or `application/proto`; `docs/http.md` has
examples). In JSON, names are camelCase, 64-bit integers are strings, and times and durations are
`"2026-11-21T03:00:00Z"` and `"1.5s"`.

Errors have a status, a reason for programs (`google.rpc.ErrorInfo`), and where it helps the fields concerned
(`BadRequest`) and when to try again (`RetryInfo`); `serving/errors.py` and `hq/errors.py` list all of them,
ordered by what a caller does next.
"""

# Where a file's descriptor keeps the comments of what: numbers of fields in descriptor.proto.
MESSAGE, ENUM, SERVICE = 4, 5, 6
FIELD, NESTED, METHOD, VALUE = 2, 3, 2, 2

Comments = Mapping[tuple[int, ...], str]
SCALARS = {number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()}


def main() -> None:
    text = page(described())
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text)
    elif PAGE.read_text() != text:
        sys.exit(f"docs/{PAGE.name} differs from proto/\nRun: make proto")
    else:
        print(f"docs/{PAGE.name} is up to date")


def described() -> list[FileDescriptorProto]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "all"
        run_protoc("--include_source_info", f"--descriptor_set_out={target}", *FILES)
        found = {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file}
    return [found[name] for name in FILES]


def page(files: Sequence[FileDescriptorProto]) -> str:
    parts = [HEAD]
    for file in files:
        comments = {tuple(at.path): at.leading_comments.strip() for at in file.source_code_info.location}
        for i, service in enumerate(file.service):
            parts += service_section(service, comments, (SERVICE, i))
    parts.append("## Messages\n")
    for file in files:
        comments = {tuple(at.path): at.leading_comments.strip() for at in file.source_code_info.location}
        for i, message in enumerate(file.message_type):
            parts += message_sections(message, comments, (MESSAGE, i), "")
        for i, enum in enumerate(file.enum_type):
            parts += enum_section(enum, comments, (ENUM, i), "")
    return "\n".join(parts)


def service_section(service: ServiceDescriptorProto, comments: Comments, path: tuple[int, ...]) -> Iterator[str]:
    yield f"## hq.v1.{service.name}\n\n{comments.get(path, '')}\n"
    yield "| call | request | answer | |\n| --- | --- | --- | --- |"
    for i, method in enumerate(service.method):
        answer = ("stream of " if method.server_streaming else "") + link(method.output_type)
        yield f"| **{method.name}** | {link(method.input_type)} | {answer} | {cell(comments, (*path, METHOD, i))} |"
    yield ""


def message_sections(message: DescriptorProto, comments: Comments, path: tuple[int, ...], outer: str) -> Iterator[str]:
    name = f"{outer}{message.name}"
    if message.options.map_entry:
        return
    yield f"### {name}\n\n{comments.get(path, '')}\n"
    if message.field:
        yield "| field | type | |\n| --- | --- | --- |"
        for i, field in enumerate(message.field):
            yield f"| `{field.name}` = {field.number} | {typed(field, message)} | {cell(comments, (*path, FIELD, i))} |"
        yield ""
    for i, nested in enumerate(message.nested_type):
        yield from message_sections(nested, comments, (*path, NESTED, i), f"{name}.")
    for i, enum in enumerate(message.enum_type):
        yield from enum_section(enum, comments, (*path, 4, i), f"{name}.")


def enum_section(enum: EnumDescriptorProto, comments: Comments, path: tuple[int, ...], outer: str) -> Iterator[str]:
    yield f"### {outer}{enum.name}\n\n{comments.get(path, '')}\n\n| value | |\n| --- | --- |"
    for i, value in enumerate(enum.value):
        yield f"| `{value.name}` = {value.number} | {cell(comments, (*path, VALUE, i))} |"
    yield ""


def typed(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    """The type of a field as one writes it in a .proto file."""
    entry = next(
        (n for n in message.nested_type if n.options.map_entry and field.type_name.endswith("." + n.name)), None
    )
    if entry is not None:
        key, value = entry.field
        return f"map of {one(key)} to {one(value)}"
    repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    return ("repeated " if repeated else "optional " if field.proto3_optional else "") + one(field)


def one(field: FieldDescriptorProto) -> str:
    return link(field.type_name) if field.type_name else SCALARS[field.type]


def link(type_name: str) -> str:
    name = type_name.removeprefix(".hq.v1.")
    if name == type_name:
        return type_name.removeprefix(".")
    return f"[{name}](#{name.lower().replace('.', '')})"


def cell(comments: Comments, path: tuple[int, ...]) -> str:
    return " ".join(comments.get(path, "").split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
