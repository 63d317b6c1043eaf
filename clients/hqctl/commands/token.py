"""token: sign tokens for operators, look into them, publish their keys."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hqcli.exits import Exit
from hqcli.options import DurationParam
from hqcli.terminal import warn
from hqctl.asking.session import complain

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE = click.Path(dir_okay=False, path_type=Path)
_LONG_S = 24 * 3600.0
_AUDIENCES = (
    "the servers that it is for (aud): hq, federated (with hq), cms, nanny, walle, gateway, console (with "
    "those that it shows), or what their --audience says"
)


_SIGNING: Final = ("--key", "--kid", "--subject", "--issuer", "--audience", "--for", "--out")


class TokenGroup(click.Group):
    """Refuses signing options right behind `hqctl token`: up to 0.1.0 that signed a token for all servers."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0].partition("=")[0] in _SIGNING:
            raise click.UsageError(f"write `hqctl token sign`, and with --audience {_AUDIENCES}")
        return super().parse_args(ctx, args)


@click.group(cls=TokenGroup)
def token() -> None:
    """Sign and inspect tokens (JWT), which authenticate a caller.

    \b
      openssl genpkey -algorithm ed25519 -out token-key.pem
      hqctl token jwks --key token-key.pem --kid k1 > jwks.json
      hqctl token sign --key token-key.pem --kid k1 --subject ops/ada --audience hq,cms --out ada.token
      hqctl --token-file ada.token status
    """


@token.command(short_help="Sign a token for these servers.")
@click.option("--key", type=_FILE, required=True, help="Private key to sign with (PEM; Ed25519 or RSA).")
@click.option("--kid", required=True, help="Id of the key (kid), as in the servers' --jwks file.")
@click.option("--subject", required=True, help="Subject (sub) of the token, as the policy names it.")
@click.option("--issuer", default="hqctl", show_default=True, help="Issuer (iss), as in the servers' --issuer.")
@click.option(
    "--audience", default="hq", show_default=True, metavar="NAME,...", help=f"{_AUDIENCES[0].upper()}{_AUDIENCES[1:]}."
)
@click.option("--for", "span_s", type=DurationParam(1), default="8h", show_default=True, help="Validity of the token.")
@click.option("--out", type=_FILE, help="Write it to this file atomically, mode 0600.")
def sign(key: Path, kid: str, subject: str, issuer: str, audience: str, span_s: float, out: Path | None) -> None:
    """Sign a token (JWT), which authenticates a caller at the servers that it lists."""
    from hqctl.signed_tokens import Claims, read_private
    from hqctl.signed_tokens import sign as signed

    audiences = tuple(name.strip() for name in audience.split(","))
    if not all(audiences):
        raise click.UsageError(f"--audience {audience!r}: write names with commas between them, such as hq,cms")
    now = int(time.time())
    if span_s > _LONG_S:
        warn("servers reject tokens that are valid for longer than --max-token-ttl, by default 24h")
    claims = Claims(subject, issuer, audiences, now, now + int(span_s), secrets.token_hex(8))
    with _exit_on_bad_token():
        _emit(signed(claims, read_private(key), kid), out)


@token.command(short_help="Show the header and claims of a token.")
@click.argument("file", default="-", metavar="[FILE]")
def inspect(file: str) -> None:
    """Show the header and claims of a token, without its signature: the output cannot be used as a token.

    Does not check the signature, nor whether a server would accept the token.
    """
    from hqctl.signed_tokens import look_into

    with _exit_on_bad_token():
        text = sys.stdin.read() if file == "-" else Path(file).read_text()
        shown = look_into(text.strip())
    for name in ("iat", "nbf", "exp"):
        value = shown["claims"].get(name)
        if isinstance(value, int | float):
            shown["claims"][name] = _time(value)
    click.echo(json.dumps(shown, indent=2, default=str))


@token.command()
@click.option(
    "--key", "keys", type=_FILE, multiple=True, required=True, help="Private or public key (PEM); repeatable."
)
@click.option("--kid", "kids", multiple=True, required=True, help="Key id; one for each --key, in the same order.")
def jwks(keys: tuple[Path, ...], kids: tuple[str, ...]) -> None:
    """Print the public keys as a JWKS, for the servers' --jwks."""
    from hqctl.signed_tokens import jwks as as_jwks
    from hqctl.signed_tokens import public_jwk, read_public

    if len(keys) != len(kids) or len(set(kids)) != len(kids):
        raise click.UsageError("give one --kid for each --key, in the same order")
    with _exit_on_bad_token():
        click.echo(as_jwks([public_jwk(read_public(key), kid) for key, kid in zip(keys, kids, strict=True)]))


def _emit(signed: str, out: Path | None) -> None:
    if out is None:
        click.echo(signed)
        return
    # Written to a new file that replaces the old one, so that readers see either one, complete.
    made = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(signed + "\n")
        made.replace(out)
    except OSError as error:
        complain(f"--out {out}: {error.strerror}: choose a file in a folder that this user can write")
        sys.exit(Exit.REFUSED)


def _time(value: float) -> str:
    with contextlib.suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds")
    return str(value)


@contextlib.contextmanager
def _exit_on_bad_token() -> Iterator[None]:
    from hqctl.signed_tokens import BadToken

    try:
        yield
    except BadToken as fault:
        complain(str(fault))
        sys.exit(Exit.REFUSED)
    except OSError as error:
        complain(f"{error.filename}: {error.strerror}: give a file that this user can read")
        sys.exit(Exit.REFUSED)
