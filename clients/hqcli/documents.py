"""Files that people write: YAML (and so JSON), read so that every error names the file and the line."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

SUFFIXES = (".yaml", ".yml", ".json")
_MOST_DEPTH = 100


class BadDocument(Exception):
    """A document is invalid; str() says where and why, with one line for each fault."""


class _DocumentLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML with YAML 1.2's scalars: only true and false are booleans, times stay text; duplicate keys are errors.

    Servers read documents of their callers, too: a short text that would become large or slow to read is refused.
    """

    most_merged = 100_000.0  # entries that `<<` adds to all mappings together: each merge may add those of ten others
    most_digits = 100.0

    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self._merged = 0

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for number, (key, value) in enumerate(node.value):
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key that is no text", key.start_mark)
            if key.value in seen and key.value != "<<":
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add(key.value)
            if key.tag in _NO_TEXT:  # a label `1` is text: keys of several types could not be put in order
                text = yaml.ScalarNode("tag:yaml.org,2002:str", key.value, key.start_mark, key.end_mark)
                node.value[number] = text, value
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    self._count_merged(one)
        super().flatten_mapping(node)

    def _count_merged(self, node: yaml.Node) -> None:
        if isinstance(node, yaml.MappingNode):  # else it is refused in a moment
            self.flatten_mapping(node)
            self._merged += len(node.value)
        if self._merged > self.most_merged:
            why = f"`<<` brings more than {self.most_merged:.0f} entries"
            raise yaml.constructor.ConstructorError(None, None, why, node.start_mark)

    def construct_number(self, node: yaml.ScalarNode) -> Any:
        """A number; `10:30`, which YAML 1.1 reads as one to the base of 60, is text."""
        if ":" in node.value:
            return self.construct_scalar(node)
        if len(node.value) > self.most_digits:
            raise yaml.constructor.ConstructorError(None, None, "a number that is too long", node.start_mark)
        is_float = node.tag.endswith(":float")
        return self.construct_yaml_float(node) if is_float else self.construct_yaml_int(node)


class _AcceptedLoader(_DocumentLoader):
    """For a text that was accepted earlier, perhaps before there were bounds: it has none."""

    most_merged = most_digits = math.inf


for _kind in ("int", "float"):
    _DocumentLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _DocumentLoader.construct_number)


_DocumentLoader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
    ]
    for first, resolvers in _DocumentLoader.yaml_implicit_resolvers.items()
}
_NO_TEXT = tuple(f"tag:yaml.org,2002:{kind}" for kind in ("int", "float", "bool", "null"))
_TRUE_OR_FALSE = re.compile(r"^(?:true|false)$", re.IGNORECASE)
_DocumentLoader.add_implicit_resolver("tag:yaml.org,2002:bool", _TRUE_OR_FALSE, list("tTfF"))


def texts(names: tuple[str, ...], *, recursive: bool = False, hint: str = "") -> Iterator[tuple[str, str]]:
    """Names and contents of files, of the .yaml, .yml and .json files in folders, and of `-` (stdin), in order.

    Args:
        hint: what to do if a folder has no such file, for the error.

    Raises:
        BadDocument: one cannot be read.
    """
    for name in names:
        if name == "-":
            yield "stdin", sys.stdin.read()
            continue
        path = Path(name)
        files = _files_in(path, recursive) if path.is_dir() else [path]
        if not files:
            raise BadDocument(f"{name}: no {', '.join(SUFFIXES)} file in this folder{hint}")
        for file in files:
            yield str(file), _text_of(file)


def _files_in(folder: Path, recursive: bool) -> list[Path]:
    return sorted(p for p in folder.glob("**/*" if recursive else "*") if p.suffix in SUFFIXES and p.is_file())


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise BadDocument(f"{file}: cannot be read: {error.strerror}: give a file that this user can read") from None
    except UnicodeDecodeError:
        raise BadDocument(f"{file}: is not UTF-8 text") from None


def value_of(text: str) -> Any:
    """The one document in a text; None: it is empty. Raises BadDocument: where and why."""
    try:
        _check_depth(text)
        return _DocumentLoader(text).get_single_data()
    except Exception as error:  # PyYAML also fails with errors that are not its own
        raise BadDocument(_yaml_fault(error)) from None


def documents_in(name: str, text: str, bad: list[str], *, was_accepted: bool = False) -> Iterator[tuple[str, Any]]:
    """The documents in a text with their places (`web.yaml, document 2`); faults are appended to `bad`.

    Args:
        was_accepted: the text was accepted earlier, so no bounds apply.
    """
    loader = _AcceptedLoader if was_accepted else _DocumentLoader
    try:
        _check_depth(text)
        documents = [value for value in yaml.load_all(text, Loader=loader) if value is not None]
    except Exception as error:
        bad.append(f"{name}: {_yaml_fault(error)}")
        return
    if not documents:
        bad.append(f"{name}: is empty")
    for number, value in enumerate(documents, 1):
        yield (f"{name}, document {number}" if len(documents) > 1 else name), value


def _check_depth(text: str) -> None:
    """Raises RecursionError. libyaml composes by recursion in C: a deep text would end the process, not the call."""
    depth = 0
    for event in yaml.parse(text, Loader=_DocumentLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_DEPTH:
            raise RecursionError


def _yaml_fault(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or f"{error}\n".splitlines()[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)
