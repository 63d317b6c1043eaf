"""HTTP by the standard library, made interruptible: a server that says nothing must not hold up our end."""

from __future__ import annotations

import contextlib
import http.client
import socket
import urllib.request
from typing import Any

from clients.instancectl.threads import Cancel

SILENCE_S = 30.0
_CONNECT_S = 5.0


def opener(cancel: Cancel) -> urllib.request.OpenerDirector:
    """Opens addresses until `cancel` is set: then the connection is cut, and the call fails."""
    return urllib.request.build_opener(_Http(cancel), _Https(cancel))


class _Http(urllib.request.HTTPHandler):
    def __init__(self, cancel: Cancel) -> None:
        super().__init__()
        self._cancel = cancel

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connection(http.client.HTTPConnection, self._cancel), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, cancel: Cancel) -> None:
        super().__init__()
        self._cancel = cancel

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_connection(http.client.HTTPSConnection, self._cancel), req)


def _connection(kind: Any, cancel: Cancel) -> Any:
    """A class of connections that `cancel` cuts."""

    class Connection(kind):  # type: ignore[misc]
        def connect(self) -> None:
            silence_s, self.timeout = self.timeout, _CONNECT_S
            super().connect()
            self.timeout = silence_s
            self.sock.settimeout(silence_s)
            cancel.interrupted_by(lambda connected=self.sock: _cut(connected))

    return Connection


def _cut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
