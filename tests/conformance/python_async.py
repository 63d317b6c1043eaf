"""Python's asyncio client under the suite: `-- python -m tests.conformance.python_async [FLAW]`.

With a flaw (flaws.py) it lacks a behaviour: the suite has to notice.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any

from hqclient import (
    ClientSettings,
    CredentialFiles,
    Credentials,
    Discovery,
    DiscoverySettings,
    Endpoint,
    EndpointChanges,
    RetrySettings,
    Service,
    WatchSettings,
    watch,
)
from hqclient.discovery.feed import FeedSettings
from tests.conformance.flaws import apply_flaw


def build_settings(ms: Mapping[str, int]) -> DiscoverySettings:
    """The suite's times, in the library's words."""
    hasty = RetrySettings(first_backoff_s=0.01, max_backoff_s=ms["retry_ms"] / 1e3)
    watch = WatchSettings(
        backoff=hasty,
        silence_limit_s=ms["silence_ms"] / 1e3,
        connect_timeout_s=ms["connect_ms"] / 1e3,
        renew_s=ms["renew_ms"] / 1e3,
    )
    client = ClientSettings(
        retry=hasty, watch=watch, connect_timeout_s=ms["connect_ms"] / 1e3, first_probe_s=0.05, max_probe_s=0.1
    )
    feed = FeedSettings(
        save_after_s=ms["save_ms"] / 1e3, refused_s=ms["refused_ms"] / 1e3, believe_after_s=ms["believe_ms"] / 1e3
    )
    return DiscoverySettings(client=client, feed=feed, stale_after_s=ms["stale_ms"] / 1e3)


def build_credentials(words: Mapping[str, Any]) -> Credentials | None:
    """Credentials from the files that an `open` step names."""
    names = {name: words[name] for name in ("ca", "cert", "key", "token_file") if words.get(name)}
    return Credentials(CredentialFiles(**names)) if names else None


class ShownLists:
    """The list after each change, as a subscriber sees it."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], Endpoint] = {}
        self._lists: list[list[dict[str, Any]]] = []

    def on_change(self, changes: EndpointChanges) -> None:
        for endpoint in changes.removed:
            del self._by_key[endpoint.key]
        self._by_key.update((endpoint.key, endpoint) for endpoint in changes.added)
        self._by_key.update((after.key, after) for _, after in changes.changed)
        self._lists.append([describe_endpoint(endpoint) for endpoint in self._by_key.values()])

    def take(self) -> list[list[dict[str, Any]]]:
        """Lists since the last call."""
        taken, self._lists = self._lists, []
        return taken


def describe_endpoint(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "id": endpoint.instance_id,
        "cluster": endpoint.cluster,
        "address": endpoint.address,
        "revision": endpoint.revision,
        "labels": dict(endpoint.labels),
        "weight": endpoint.weight,
    }


def describe_service(service: Any, shown: ShownLists) -> dict[str, Any]:
    """The answer to `state`; of both of Python's clients."""
    return {
        "known": service.source.name != "NONE",
        "source": service.source.name.lower(),
        "stale": service.stale,
        "age_s": service.age_s if math.isfinite(service.age_s) else None,
        "error": str(service.error or ""),
        "doubt": service.doubt,
        "endpoints": [describe_endpoint(endpoint) for endpoint in service.endpoints],
        "lists": shown.take(),
    }


async def main() -> None:
    if len(sys.argv) > 1:
        apply_flaw(sys.argv[1])
    watch._RENEWAL_SHARE = 0  # the suite's snapshots take as long as its steps
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with AsyncExitStack() as stack:
        service: Service | None = None
        shown = ShownLists()
        async for line in reader:
            words = json.loads(line)
            answer: dict[str, Any] = {}
            if words["op"] == "open":
                shown = ShownLists()
                found = Discovery(
                    words["servers"],
                    state_dir=words.get("state_dir"),
                    settings=build_settings(words["settings"]),
                    credentials=build_credentials(words),
                )
                service = await stack.enter_async_context(found.service(words["service"], port=words["port"]))
                service.on_change(shown.on_change)
            elif words["op"] == "state":
                answer = describe_service(service, shown)
            else:
                await stack.aclose()
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
