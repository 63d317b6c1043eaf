"""Answers as JSON, YAML or names: the API's proto3 JSON form, so that what is shown can be applied again."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from hqcli.terminal import escape_controls, has_controls, json_controls

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("table", "wide", "json", "yaml", "name", "jsonpath=…")
LISTS = ("table", "json", "yaml", "jsonpath=…")
TEXTS = ("text", "json", "yaml", "jsonpath=…")
JSONPATH = "jsonpath="


class Format(click.ParamType[str]):
    """One of a few words, or `jsonpath=TEMPLATE`."""

    name = "format"

    def __init__(self, formats: Sequence[str]) -> None:
        self.formats = formats

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "|".join(self.formats)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        if text.startswith(JSONPATH) and "jsonpath=…" in self.formats:
            self._check(text.removeprefix(JSONPATH), param, ctx)
        elif text not in self.formats:
            self.fail(f"{text!r} is not one of {', '.join(self.formats)}", param, ctx)
        return text

    def _check(self, template: str, param: click.Parameter | None, ctx: click.Context | None) -> None:
        from hqcli.jsonpath import BadTemplate
        from hqcli.jsonpath import template as parsed

        try:
            parsed(template)
        except BadTemplate as fault:
            self.fail(str(fault), param, ctx)


def output_option(*formats: str) -> Callable[[F], F]:
    """The option -o, with these formats; the first is the default."""
    return click.option(
        "-o",
        "--output",
        type=Format(formats),
        default=formats[0],
        show_default=True,
        help="Output format.",
    )


def as_dict(message: Message) -> dict[str, Any]:
    """A message in proto3 JSON, as Python values; the keys of its maps are sorted."""
    from google.protobuf.json_format import MessageToDict  # takes 25 ms, which tables need not pay

    data = MessageToDict(message)
    _sort_maps(data, cast("Descriptor", message.DESCRIPTOR))
    return data


def _sort_maps(data: dict[str, Any], kind: Descriptor) -> None:
    """Protobuf may return equal maps in different orders, which a diff would show."""
    for field in kind.fields:
        value, inner = data.get(field.json_name), field.message_type
        if inner is None:
            continue
        if isinstance(value, dict) and inner.GetOptions().map_entry:
            data[field.json_name] = dict(sorted(value.items()))
            continue
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict):
                _sort_maps(one, inner)


def is_data(output: str) -> bool:
    """Whether the format is for programs: json, yaml or a jsonpath."""
    return output in ("json", "yaml") or output.startswith(JSONPATH)


def print_data(value: Message | dict[str, Any], output: str) -> None:
    """Print one object in a format for programs."""
    data = value if isinstance(value, dict) else as_dict(value)
    if output.startswith(JSONPATH):
        print_jsonpath(data, output)
    elif output == "yaml":
        _dump_yaml(data)
    else:
        print_json(data)


def print_items(items: Iterable[Message], sources: Iterable[Message], output: str) -> None:
    """Print a list in a format for programs: one object with `kind`, `items` and `sources`."""
    data = {"kind": "List", "items": [as_dict(item) for item in items], "sources": [as_dict(one) for one in sources]}
    print_data(data, output)


def print_json(value: Message | dict[str, Any]) -> None:
    """Print one JSON document."""
    data = value if isinstance(value, dict) else as_dict(value)
    click.echo(json_controls(json.dumps(data, indent=2, ensure_ascii=False)))


def print_json_line(value: Message | dict[str, Any]) -> None:
    """Print one JSON document on one line."""
    data = value if isinstance(value, dict) else as_dict(value)
    click.echo(json_controls(json.dumps(data, ensure_ascii=False)))


def print_jsonpath(data: dict[str, Any], output: str) -> None:
    """Print what a template makes of a value, with a line break at the end unless it ends in one.

    Programs get every character as it is. On a terminal those that would control it are spelled out.
    """
    from hqcli.jsonpath import template

    text = template(output.removeprefix(JSONPATH))(data)
    if sys.stdout.isatty():
        text = "\t".join(map(escape_controls, text.split("\t")))
    click.echo(text, nl=not text.endswith("\n"))


def print_yaml(messages: Iterable[Message]) -> None:
    """Print one YAML document for each message."""
    for number, message in enumerate(messages):
        if number:
            click.echo("---")
        _dump_yaml(as_dict(message))


def yaml_text(data: dict[str, Any]) -> str:
    """A value as YAML, its keys in their own order."""
    import yaml

    return json_controls(yaml.dump(data, Dumper=_yaml_dumper(), sort_keys=False, allow_unicode=True))


@cache
def _yaml_dumper() -> Any:
    """A dumper that puts text with control characters in double quotes, where `json_controls` can spell them out."""
    import yaml

    class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
        pass

    def represent(dumper: Any, text: str) -> Any:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style='"' if has_controls(text) else None)

    Dumper.add_representer(str, represent)
    return Dumper


def _dump_yaml(data: dict[str, Any]) -> None:
    click.echo(yaml_text(data), nl=False)
