"""Write docs/api*.md from the comments in proto/, or (--check) say whether they are up to date."""

import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from google.protobuf import descriptor_pb2
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from tools.gen_proto import PROTO, run_protoc

DOCS = PROTO.parent / "docs"
HEAD = """# {title}

Made from the comments in `proto/{folder}/` by `make proto`. Every call is there over gRPC and, on the same port, as
`POST /{package}.<Service>/<Call>` in the Connect protocol (`application/json` or `application/proto`; examples are in
[http.md](http.md)). In JSON, names are camelCase, 64-bit integers are strings, and times and durations are
`"2026-11-21T03:00:00Z"` and `"1.5s"`.

Errors have a status, a reason for programs (`google.rpc.ErrorInfo`), and where it helps the fields concerned
(`BadRequest`) and when to try again (`RetryInfo`); {errors} all of them,
ordered by what a caller does next.{more}
"""


@dataclass(frozen=True, slots=True)
class Page:
    """The API of a server. `files` are in `folder`; what it stores is not among them."""

    name: str
    title: str
    folder: str
    package: str
    files: tuple[str, ...]
    errors: str = "`serving/errors.py` lists"
    more: str = ""

    def sources(self) -> list[str]:
        return [f"{self.folder}/{file}" for file in self.files]

    def head(self) -> str:
        return HEAD.format(
            title=self.title, folder=self.folder, package=self.package, errors=self.errors, more=self.more
        )


_OTHERS: Final = (
    "\n\nOther servers: [CMS](api-cms.md), [Nanny](api-nanny.md), [Wall-E](api-walle.md), [recorder](api-history.md)."
)
PAGES: Final = (
    Page(
        "api.md",
        "API reference",
        "hqpb/v1",
        "hq.v1",
        ("service.proto", "admin.proto", "instance.proto"),
        "`serving/errors.py` and `hq/errors.py` list",
        _OTHERS,
    ),
    Page("api-cms.md", "API reference: the CMS", "cmspb/v1", "cms.v1", ("cms.proto", "record.proto")),
    Page("api-history.md", "API reference: the recorder", "historypb/v1", "history.v1", ("history.proto",)),
    Page("api-nanny.md", "API reference: Nanny", "nannypb/v1", "nanny.v1", ("service.proto",)),
    Page(
        "api-walle.md",
        "API reference: Wall-E",
        "wallepb/v1",
        "walle.v1",
        ("service.proto", "host.proto", "project.proto"),
    ),
)

# Under which numbers a file's descriptor keeps the comments of each kind: fields of descriptor.proto.
MESSAGE, ENUM, SERVICE = 4, 5, 6
FIELD, NESTED, METHOD, VALUE = 2, 3, 2, 2

Comments = Mapping[tuple[int, ...], str]
SCALARS = {number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()}


def main() -> None:
    made = {DOCS / each.name: text_of(each, described(each)) for each in PAGES}
    if "--check" not in sys.argv[1:]:
        for path, text in made.items():
            path.write_text(text)
        return
    stale = [f"docs/{path.name}" for path, text in made.items() if not path.exists() or path.read_text() != text]
    if stale:
        sys.exit(f"{', '.join(stale)}: not what proto/ says\nRun: make proto")
    print(f"{', '.join(f'docs/{path.name}' for path in made)} are up to date")


def described(page: Page) -> list[FileDescriptorProto]:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "all"
        run_protoc("--include_source_info", f"--descriptor_set_out={target}", *page.sources())
        found = {file.name: file for file in descriptor_pb2.FileDescriptorSet.FromString(target.read_bytes()).file}
    return [found[name] for name in page.sources()]


def text_of(page: Page, files: Sequence[FileDescriptorProto]) -> str:
    parts = [page.head()]
    for file in files:
        comments = {tuple(at.path): at.leading_comments.strip() for at in file.source_code_info.location}
        for i, service in enumerate(file.service):
            parts += service_section(service, comments, (SERVICE, i), page.package)
    parts.append("## Messages\n")
    for file in files:
        comments = {tuple(at.path): at.leading_comments.strip() for at in file.source_code_info.location}
        for i, message in enumerate(file.message_type):
            parts += message_sections(message, comments, (MESSAGE, i), "")
        for i, enum in enumerate(file.enum_type):
            parts += enum_section(enum, comments, (ENUM, i), "")
    return "\n".join(parts)


def service_section(
    service: ServiceDescriptorProto, comments: Comments, path: tuple[int, ...], package: str
) -> Iterator[str]:
    yield f"## {package}.{service.name}\n\n{comments.get(path, '')}\n"
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


_ELSEWHERE: Final = {
    (".hq", "Instance"): "api.md",
    (".cms", "LedgerEntry"): "api-cms.md",
    (".walle", "FuseEntry"): "api-walle.md",
}  # others: on the page itself


def link(type_name: str) -> str:
    if type_name.startswith(".google."):
        return type_name.removeprefix(".")
    package, name = type_name.split(".v1.")
    page = _ELSEWHERE.get((package, name), "")
    return f"[{name}]({page}#{name.lower().replace('.', '')})"


def cell(comments: Comments, path: tuple[int, ...]) -> str:
    return " ".join(comments.get(path, "").split()).replace("|", "\\|")


if __name__ == "__main__":
    main()
