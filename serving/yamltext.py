"""YAML of settings: one document, in which no mapping has duplicate keys; faults say where, not what."""

from __future__ import annotations

from typing import Any

import yaml


class BadYaml(ValueError):
    """A fault and its place, without the text of its line: faults are shown to people who may not read the file."""


class _StrictLoader(yaml.SafeLoader):
    """Refuses duplicate keys; the library would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(names) != len(set(names)):  # the key is not named: faults show no contents
            raise yaml.constructor.ConstructorError(None, None, "duplicate key", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def load(text: str | bytes) -> Any:
    """Return the value of the text; None: it is empty. Raises BadYaml."""
    try:
        return _StrictLoader(text).get_single_data()
    except Exception as error:  # PyYAML also fails with errors that are not its own
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or type(error).__name__
        raise BadYaml(what if mark is None else f"{what}, line {mark.line + 1}") from None
