"""The text that `hq dev` prints when it serves: addresses, and three commands to try."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hq.process.server import ReplicaServer
from serving.sockets import is_loopback


def welcome(server: ReplicaServer, store: str, note: str = "") -> None:
    """Print addresses and commands that work as printed in another shell."""
    listening = server.listening.result()
    hqctl = _command("hqctl")
    at = "" if listening.grpc == "127.0.0.1:7071" else f" --server {listening.grpc}"
    is_kept = "nothing is kept" if store == "memory" else "the data is kept"
    is_ours = is_loopback(listening.grpc) and is_loopback(listening.http)
    whose = "for this machine only" if is_ours else "whoever reaches these addresses can change everything"
    example = Path(__file__).resolve().parents[2] / "examples" / "web.yaml"
    click.echo(
        f"""
HQ serves.  gRPC {listening.grpc} · HTTP http://{listening.http} · {store}
Without TLS or authentication: {whose}.{f"{chr(10)}{note}" if note else ""}

Try in another shell:
  {hqctl}{at} apply -f {_short(example)}
  {hqctl}{at} report web-1 r1 --ready
  {hqctl}{at} find web
  {hqctl}{at} why web-1

Ctrl-C stops it; {is_kept}."""
    )


def _command(name: str) -> str:
    """How to call a command of this environment from here."""
    return _short(Path(sys.executable).parent / name)


def _short(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
