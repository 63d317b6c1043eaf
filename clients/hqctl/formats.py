"""Answers as JSON, YAML or names: the API's proto3 JSON form, so that what is shown can be applied again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

F = TypeVar("F", bound=Callable[..., Any])

FORMATS = ("table", "wide", "json", "yaml", "name")


def output_option(*formats: str) -> Callable[[F], F]:
    """The option -o, with these formats; the first is the default."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        show_default=True,
        help="Format of the answer.",
    )


def as_dict(message: Message) -> dict[str, Any]:
    """A message in proto3 JSON, as Python values."""
    return MessageToDict(message)


def print_json(value: Message | dict[str, Any]) -> None:
    """Print one JSON document."""
    data = as_dict(value) if isinstance(value, Message) else value
    click.echo(json.dumps(data, indent=2, ensure_ascii=False))


def print_json_line(value: Message | dict[str, Any]) -> None:
    """Print one JSON document on one line."""
    data = as_dict(value) if isinstance(value, Message) else value
    click.echo(json.dumps(data, ensure_ascii=False))


def print_yaml(messages: Iterable[Message]) -> None:
    """Print one YAML document for each message."""
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    for number, message in enumerate(messages):
        if number:
            click.echo("---")
        text = yaml.dump(as_dict(message), Dumper=dumper, sort_keys=False, allow_unicode=True)
        click.echo(text, nl=False)
