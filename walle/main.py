"""The command `walle`: the client's commands (wallectl), plus those of the server, imported when they are used."""

from __future__ import annotations

from typing import Final

from wallectl.main import group

SERVERS: Final = {
    "serve": ("walle.serve", "serve", "Run a process of Wall-E on an existing etcd."),
    "dev": ("walle.serve", "dev", "Run Wall-E with its own etcd, to try it out."),
    "replay": ("walle.replay_command", "replay", "Decide what the fuses decided again, under their limits or others."),
}
cli = group(SERVERS)

if __name__ == "__main__":
    cli()
