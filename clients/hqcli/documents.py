"""Files that people write: YAML (and so JSON), read so that every error names the file and the line."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

SUFFIXES = (".yaml", ".yml", ".json")


class BadDocument(Exception):
    """A document is invalid; str() says where and why, with one line for each fault."""


class _DocumentLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML with YAML 1.2's scalars: only true and false are booleans, times stay text; duplicate keys are errors."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.value in seen and key.value != "<<":
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key.value!r}", key.start_mark)
            seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


_DocumentLoader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
    ]
    for first, resolvers in _DocumentLoader.yaml_implicit_resolvers.items()
}
_TRUE_OR_FALSE = re.compile(r"^(?:true|false)$", re.IGNORECASE)
_DocumentLoader.add_implicit_resolver("tag:yaml.org,2002:bool", _TRUE_OR_FALSE, list("tTfF"))


def texts(names: tuple[str, ...], *, recursive: bool = False, hint: str = "") -> Iterator[tuple[str, str]]:
    """Names and contents of files, of the .yaml, .yml and .json files in folders, and of `-` (stdin), in order.

    Args:
        hint: what to do if a folder has none.

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
        return _DocumentLoader(text).get_single_data()
    except yaml.YAMLError as error:
        raise BadDocument(_yaml_fault(error)) from None


def documents_in(name: str, text: str, bad: list[str]) -> Iterator[tuple[str, Any]]:
    """The documents in a text with their places (`web.yaml, document 2`); faults are appended to `bad`."""
    try:
        documents = [value for value in yaml.load_all(text, Loader=_DocumentLoader) if value is not None]
    except yaml.YAMLError as error:
        bad.append(f"{name}: {_yaml_fault(error)}")
        return
    if not documents:
        bad.append(f"{name}: is empty")
    for number, value in enumerate(documents, 1):
        yield (f"{name}, document {number}" if len(documents) > 1 else name), value


def _yaml_fault(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}, column {mark.column + 1}: {problem}" if mark else str(problem)
