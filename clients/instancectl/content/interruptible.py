"""HTTP by the standard library, made interruptible: a server that says nothing must not hold up our end."""

from __future__ import annotations

import contextlib
import http.client
import socket
import urllib.request
from functools import partial
from typing import Any

from instancectl.content.threads import Cancel

SILENCE_S = 30.0
_CONNECT_S = 5.0  # cannot be cut


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
            self.timeout = _CONNECT_S
            super().connect()
            self.sock.settimeout(SILENCE_S)
            cancel.interrupted_by(partial(_cut, self.sock))

    return Connection


def _cut(connected: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)
