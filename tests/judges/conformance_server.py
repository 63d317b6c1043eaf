"""The server that connectconformance starts for each of its configurations, and ends with SIGTERM.

Its standard input says what it shall be (a ServerCompatRequest), its standard output where it is (a
ServerCompatResponse), each behind its length in four bytes. The only argument: the `proto` folder of the judge.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

from serving.errors import ServiceError
from serving.limiting.limits import Limits
from serving.process import run, when_told_to_stop
from tests.judges import conformance_service as service
from tests.judges.listening import TlsFiles, listening

_HEAD_BYTES = 4
_GRACE_S = 1.0


def _asked() -> Any:
    size = int.from_bytes(sys.stdin.buffer.read(_HEAD_BYTES), "big")
    return service.message("ServerCompatRequest").FromString(sys.stdin.buffer.read(size))


def _answer(port: int, cert: bytes) -> None:
    body = service.message("ServerCompatResponse")(host="127.0.0.1", port=port, pem_cert=cert).SerializeToString()
    sys.stdout.buffer.write(len(body).to_bytes(_HEAD_BYTES, "big") + body)
    sys.stdout.buffer.flush()


def _laid_down(asked: Any, directory: Path) -> TlsFiles | None:
    """The judge's certificates as files; None: plain text."""
    if not asked.use_tls:
        return None
    files = TlsFiles(directory / "server.crt", directory / "server.key")
    files.cert.write_bytes(asked.server_creds.cert)
    files.key.write_bytes(asked.server_creds.key)
    if not asked.client_tls_cert:
        return files
    (directory / "clients.crt").write_bytes(asked.client_tls_cert)
    return files._replace(client_ca=directory / "clients.crt")


async def serve(asked: Any, directory: Path) -> None:
    """Until it is told to stop."""
    told = asyncio.Event()
    when_told_to_stop(told.set)
    limits = Limits(max_request_bytes=asked.message_receive_limit) if asked.message_receive_limit else Limits()
    server, port = await listening(service.table(), _laid_down(asked, directory), limits)
    _answer(port, asked.server_creds.cert)
    await told.wait()
    await server.stop(_GRACE_S)


def main() -> None:
    """Be what standard input asks for."""
    service.learn(Path(sys.argv[1]))
    ServiceError.plain_details = ()  # our own details beside an error are allowed, but the judge counts all there are
    asked = _asked()
    with tempfile.TemporaryDirectory(prefix="hq-judge-") as directory:
        run(lambda: serve(asked, Path(directory)))


if __name__ == "__main__":
    main()
