"""A name server as Wall-E uses it: queries and updates of one zone over TCP, unsigned, in memory."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import dns.message
import dns.name
import dns.opcode
import dns.rdatatype
import dns.rrset
import dns.update


@dataclass
class FakeNames:
    """Attributes:
    records: the IPv4 addresses of each host.
    updates: how many of each host took effect.
    """

    address: str = ""
    records: dict[str, set[str]] = field(default_factory=dict)
    updates: Counter[str] = field(default_factory=Counter)

    def answer(self, asked: dns.message.Message) -> dns.message.Message:
        answer = dns.message.make_response(asked)
        if isinstance(asked, dns.update.UpdateMessage):
            self._update(asked)
        else:
            self._look(asked, answer)
        return answer

    def _update(self, asked: dns.update.UpdateMessage) -> None:
        for rrset in asked.update:
            host = _host(rrset.name)
            if rrset.rdtype == dns.rdatatype.A:
                self.records[host] = set() if rrset.deleting else self.records[host] | {str(one) for one in rrset}
        self.updates[_host(asked.update[0].name)] += 1

    def _look(self, asked: dns.message.Message, answer: dns.message.Message) -> None:
        (question,) = asked.question
        addresses = sorted(self.records.get(_host(question.name), ()))
        if question.rdtype == dns.rdatatype.A and addresses:
            answer.answer.append(dns.rrset.from_text(question.name, 60, "IN", "A", *addresses))


def _host(name: dns.name.Name) -> str:
    return name.to_text(omit_final_dot=True)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Callers that die or are cut off are what it is there for."""


@contextmanager
def fake_names() -> Iterator[FakeNames]:
    """A name server on a free port; its zone is the root."""
    names, lock = FakeNames(), threading.Lock()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while head := self.rfile.read(2):
                asked = dns.message.from_wire(self.rfile.read(struct.unpack("!H", head)[0]))
                with lock:
                    wire = names.answer(asked).to_wire()
                self.wfile.write(struct.pack("!H", len(wire)) + wire)

    server = _Server(("127.0.0.1", 0), Handler)
    names.address = f"127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield names
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
