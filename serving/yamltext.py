"""YAML of settings: one document, in which no mapping says something twice."""

from __future__ import annotations

from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """The library would keep the last, whatever stands above."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(names) != len(set(names)):  # which one is not said: faults are shown to people who may not read the file
            raise yaml.constructor.ConstructorError(None, None, "duplicate key", node.start_mark)
        return super().construct_mapping(node, deep=deep)


def load(text: str | bytes) -> Any:
    """What the text says. Raises whatever PyYAML does, which also stumbles with errors that are none of its own."""
    return _Loader(text).get_single_data()
