"""The file that says which locations there are, read again when it changes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

from federated.locations.config import BadConfig, FrontConfig, parse

log = logging.getLogger(__name__)


class ConfigFile:
    """The file, asked from time to time whether it says something new.

    Attributes:
        current: what is in force.
        fault: why the file as it is now is not in force; empty: it is.
    """

    def __init__(self, path: Path, check: Callable[[FrontConfig], None] = lambda _: None) -> None:
        """`check` raises BadConfig for what must not come into force. Raises that, or OSError if it cannot be read."""
        self._path, self._check = path, check
        self._text = path.read_text(encoding="utf-8")
        self.current = self._checked(self._text)
        self.fault = ""

    def reread(self) -> bool:
        """Whether `current` is another one now. A file that is broken or gone changes nothing but `fault`."""
        try:
            text = self._path.read_text(encoding="utf-8")
            if text == self._text:
                return False
            self._text = text
            changed = self._checked(text)
        except (BadConfig, OSError, UnicodeDecodeError) as error:
            if not isinstance(error, BadConfig):
                self._text = ""  # whatever can be read next is news
            self._blame("; ".join(line.strip() for line in str(error).splitlines()))
            return False
        self.fault = ""
        if changed == self.current:
            return False
        self.current = changed
        log.info("%s is in force: %s", self._path, ", ".join(changed.locations))
        return True

    def _checked(self, text: str) -> FrontConfig:
        config = parse(text)
        self._check(config)
        return config

    def _blame(self, fault: str) -> None:
        if fault != self.fault:
            log.error("cannot load %s, its previous contents remain in force: %s", self._path, fault)
        self.fault = fault
