"""The server that h2spec and interop clients judge: `python -m tests.judges.interop_server [--cert FILE --key FILE]`.

It serves grpc.testing.TestService on a free port of 127.0.0.1, says "listening on PORT", and ends when it is told to
or when its standard input closes.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import click

from serving.limiting.limits import Limits
from serving.process import run, when_told_to_stop
from tests.judges import interop_service
from tests.judges.listening import TlsFiles, listening

_GRACE_S = 2.0


async def serve(tls: TlsFiles | None) -> None:
    """Until it is told to stop."""
    told = asyncio.Event()
    when_told_to_stop(told.set)
    asyncio.get_running_loop().add_reader(sys.stdin, _closed, told)
    server, port = await listening(interop_service.table(), tls, Limits())
    print(f"listening on {port}", flush=True)
    await told.wait()
    await server.stop(_GRACE_S)


def _closed(told: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 4_096):
        asyncio.get_running_loop().remove_reader(sys.stdin)
        told.set()


@click.command()
@click.option("--cert", type=click.Path(path_type=Path))
@click.option("--key", type=click.Path(path_type=Path))
def main(cert: Path | None, key: Path | None) -> None:
    """Serve the interop service."""
    tls = TlsFiles(cert, key) if cert and key else None
    run(lambda: serve(tls))


if __name__ == "__main__":
    main()
