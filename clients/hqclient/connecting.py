"""Why there is no connection: gRPC's errors name its own layers, so each step is tried again with plain sockets."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from hqclient.credential_files import CredentialFiles

_PATIENCE_S: Final = 1.0  # for each step
_BEGIN: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"  # with empty SETTINGS, as HTTP/2 begins
_SETTINGS: Final = 4
_HEAD: Final = 9
_EXPIRED, _TOO_EARLY, _NAMES = 10, 9, (62, 64)  # X509_V_ERR_...
_UNTRUSTED: Final = (2, 18, 19, 20, 21)
NOT_GRPC: Final = "what answers there is not gRPC: check the port"


async def find_cause(address: str, files: CredentialFiles, prefix: str = "--") -> str:
    """`why_unreachable`, which may hang looking up a name, without blocking the loop or the end of the process."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[str] = loop.create_future()

    def answer(why: str) -> None:
        if not found.done():
            found.set_result(why)

    def look() -> None:
        why = ""
        try:
            why = why_unreachable(address, files, prefix)
        finally:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(answer, why)

    threading.Thread(target=look, name=f"why not {address}", daemon=True).start()
    return await found


def why_unreachable(address: str, files: CredentialFiles, prefix: str = "--") -> str:
    """The first step that fails, and what to do about it; empty: all steps succeed, so it was something else.

    It blocks, about a second for each step at most. `prefix`: of the flags that name credential files.
    """
    host = "localhost" if address.startswith("unix:") else address.rpartition(":")[0].strip("[]")
    try:
        plain = _open(address)
    except OSError as error:
        return _why_not_open(error, host)
    except UnicodeError:  # labels that are empty or too long
        return f"the name {host} cannot be resolved: check its spelling"
    except (ValueError, OverflowError):
        return "this is no address: give HOST:PORT"
    with plain:
        return _why_no_talk(plain, address, host, files, prefix)


def _open(address: str) -> socket.socket:
    if not address.startswith("unix:"):
        host, _, port = address.rpartition(":")
        return socket.create_connection((host.strip("[]"), int(port)), _PATIENCE_S)
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.settimeout(_PATIENCE_S)
        stream.connect(address.removeprefix("unix:"))
    except BaseException:
        stream.close()
        raise
    return stream


def _why_not_open(error: OSError, host: str) -> str:
    match error:
        case socket.gaierror():
            return f"the name {host} cannot be resolved: check its spelling"
        case ConnectionRefusedError():
            return "nothing listens there: start it, or check the port"
        case TimeoutError():
            return "it does not answer in time: check that the machine is on, and that no firewall is between"
        case FileNotFoundError():
            return "there is no such socket: start who listens there, or check the path"
        case PermissionError():
            return "this user may not use it: check who may write to the socket"
        case _:
            return f"{error.strerror or error}: check the network"


def _why_no_talk(plain: socket.socket, address: str, host: str, files: CredentialFiles, prefix: str) -> str:
    try:
        if files.tls:
            return _why_no_tls(plain, host, files, prefix)
        why = _why_not_grpc(plain)
        return f"it speaks TLS: give {prefix}ca" if why and _speaks_tls(address) else why
    except TimeoutError:
        return "it takes connections and says nothing: look at its process, or check the port"
    except OSError as error:
        return f"{error.strerror or error}: check the network"


def _why_not_grpc(stream: socket.socket) -> str:
    try:
        stream.sendall(_BEGIN)
        head = b""
        while len(head) < _HEAD and (more := stream.recv(_HEAD - len(head))):
            head += more
    except ConnectionError:
        return NOT_GRPC
    return "" if len(head) == _HEAD and head[3] == _SETTINGS else NOT_GRPC


def _speaks_tls(address: str) -> bool:
    """Whether the address answers a TLS handshake. Nothing else is sent, so a stranger learns nothing."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.sslsocket_class = _ClosedIfReset
    try:
        with _open(address) as plain, context.wrap_socket(plain):
            return True
    except OSError:
        return False


def _why_no_tls(plain: socket.socket, host: str, files: CredentialFiles, prefix: str) -> str:
    try:
        context = ssl.create_default_context(cafile=_path(files.ca))
        if files.cert:
            context.load_cert_chain(_path(files.cert) or "", _path(files.key))
    except (OSError, RuntimeError):
        return ""  # files that cannot be used are reported elsewhere
    context.set_alpn_protocols(["h2"])
    context.sslsocket_class = _ClosedIfReset
    try:
        stream = context.wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        return _why_not_trusted(error, host, files, prefix)
    except ssl.SSLError as error:
        return _why_no_handshake(str(error.reason), files, prefix)
    except ConnectionError:
        return "it hangs up in the TLS handshake: check that the port is one with TLS"
    with stream:
        return _why_refused(stream, files, prefix)


def _path(name: str) -> str | None:
    return str(Path(name).expanduser()) if name else None


class _ClosedIfReset(ssl.SSLSocket):
    """Closes itself if the connection is reset before the handshake: ssl would leave this socket open."""

    def getpeername(self) -> Any:
        try:
            return super().getpeername()
        except OSError as error:
            self.close()
            raise ConnectionResetError from error


def _why_no_handshake(reason: str, files: CredentialFiles, prefix: str) -> str:
    """`reason`: OpenSSL's, such as TLSV1_ALERT_UNKNOWN_CA; TLS 1.2 refuses a caller's certificate here."""
    if "ALERT" in reason and any(word in reason for word in ("CERTIFICATE", "UNKNOWN_CA", "HANDSHAKE_FAILURE")):
        return _why_caller_refused(files, prefix)
    return f"it does not speak TLS: leave out {prefix}ca, or check the port"


def _why_refused(stream: ssl.SSLSocket, files: CredentialFiles, prefix: str) -> str:
    if stream.selected_alpn_protocol() != "h2":
        return NOT_GRPC
    try:  # TLS 1.3 refuses a caller's certificate only here, by an alert or a reset, whichever comes first
        stream.sendall(_BEGIN)
        return "" if stream.recv(_HEAD) else _why_caller_refused(files, prefix)
    except (ssl.SSLError, ConnectionError):
        return _why_caller_refused(files, prefix)


def _why_not_trusted(error: ssl.SSLCertVerificationError, host: str, files: CredentialFiles, prefix: str) -> str:
    if error.verify_code == _EXPIRED:
        return "its certificate has expired: renew it there (`hq init renew`), and check this machine's clock"
    if error.verify_code == _TOO_EARLY:
        return "its certificate is not valid yet: check this machine's clock"
    if error.verify_code in _NAMES:
        return f"its certificate is not for {host}: check the address, or name it as the certificate does"
    if error.verify_code in _UNTRUSTED:
        return f"its certificate is not from the CA in {files.ca or 'this system'}: give the right one with {prefix}ca"
    return f"its certificate is refused, {error.verify_message}: check {prefix}ca"


def _why_caller_refused(files: CredentialFiles, prefix: str) -> str:
    if not files.cert:
        return f"it requires a certificate of the caller: give {prefix}cert and {prefix}key"
    both = f"with {prefix}cert and {prefix}key"
    return f"it refuses the certificate in {files.cert}: give one of its own CA that has not expired {both}"
