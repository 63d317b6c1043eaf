"""How a command connects: with the caller's credentials, shown with -v, and saying which cluster is meant."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hqclient.credentials import Credentials
from hqclient.links import ChannelFactory
from hqctl.asking.naming import CLUSTER_HEADER


def channel_factory(credentials: Credentials, *, verbose: bool) -> ChannelFactory:
    """How to open a channel to an address."""
    if not verbose:
        return credentials.channel
    from hqctl.asking.calling import telling

    return telling(credentials.channel)


def metadata_source(cluster: str) -> Callable[[], Sequence[tuple[str, str]]]:
    """What is sent with each call beside the credentials."""
    named = ((CLUSTER_HEADER, cluster),) if cluster else ()
    return lambda: named
