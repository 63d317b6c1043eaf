"""Making a revision installed: fetched, unpacked, with its secrets delivered; or why it cannot be."""

from __future__ import annotations


class PrepareFailed(Exception):
    """Preparing ended without success; it is tried again later. Neither part ever holds a secret's value.

    Attributes:
        reason: one word in CamelCase for programs.
        message: a sentence for people that names the file, package, volume, secret or script.
    """

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
