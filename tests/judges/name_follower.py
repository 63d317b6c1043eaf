"""Looks a name up by getaddrinfo, again and again, and prints each answer that differs as one line.

python -m tests.judges.name_follower NAME
"""

from __future__ import annotations

import socket
import sys
import time


def main() -> None:
    """Until it is ended."""
    shown = "nothing"
    while True:
        try:
            found = {str(one[4][0]) for one in socket.getaddrinfo(sys.argv[1], None, type=socket.SOCK_STREAM)}
            line = "found " + " ".join(sorted(found))
        except socket.gaierror as error:
            line = f"error {error}"
        if line != shown:
            shown = line
            print(line, flush=True)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
