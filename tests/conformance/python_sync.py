"""Python's synchronous client under the suite: `-- python -m tests.conformance.python_sync`."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack
from typing import Any

from hqclient import watch
from hqclient.sync import Discovery, SyncService
from tests.conformance.python_async import ShownLists, build_credentials, build_settings, describe_service


def main() -> None:
    watch._RENEWAL_SHARE = 0  # the suite's snapshots take as long as its steps
    service: SyncService | None = None
    shown = ShownLists()
    with ExitStack() as stack:
        for line in sys.stdin:
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
                service = found.service(words["service"], port=words["port"])
                service.on_change(shown.on_change)
                stack.enter_context(service)
            elif words["op"] == "state":
                answer = describe_service(service, shown)
            else:
                stack.close()
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
