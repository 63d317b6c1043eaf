"""What discovery cannot do for its caller."""

from __future__ import annotations


class NotReady(TimeoutError):
    """`ready` waited in vain; str() says for what, and what is known instead."""


class NoEndpoints(LookupError):
    """There is nothing to pick from; str() says why."""
