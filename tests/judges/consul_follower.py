"""Follows a service by py-consul, with blocking queries: prints who passes as one line whenever it differs.

python -m tests.judges.consul_follower ADDRESS SERVICE
"""

from __future__ import annotations

import sys
import time
from typing import Any

import consul  # type: ignore[import-not-found]  # on PYTHONPATH where the judge runs


def main() -> None:
    """Until it is ended."""
    (host, _, port), service = sys.argv[1].rpartition(":"), sys.argv[2]
    client = consul.Consul(host=host, port=int(port))
    index: Any = None
    shown = "nothing"
    while True:
        try:
            index, found = client.health.service(service, index=index, wait="60s", passing=True)
        except Exception as error:  # its own, and those of the library below it
            print(f"error {type(error).__name__}", flush=True)
            time.sleep(0.1)
            continue
        places = sorted(f"{one['Service']['Address']}:{one['Service']['Port']}" for one in found)
        if (line := " ".join(["found", *places])) != shown:
            shown = line
            print(line, flush=True)


if __name__ == "__main__":
    main()
