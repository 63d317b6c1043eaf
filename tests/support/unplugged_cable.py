"""A peer in a place of its own (tests/rig/places.py) whose cable drops packets: what the other side notices.

Run in a namespace of its own: `rig_command([sys.executable, "-m", "tests.support.unplugged_cable"])`.
"""

from __future__ import annotations

import asyncio
import sys

from tests.rig.places import Place, apart

_ECHO = """
import socket, sys
server = socket.create_server((sys.argv[1], 0))
print(server.getsockname()[1], flush=True)
peer, _ = server.accept()
while data := peer.recv(100):
    peer.sendall(data)
"""
_SILENCE_S, _ANSWER_S = 0.5, 30.0


class Echo:
    """One connection to who says everything back."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    def say(self, word: bytes) -> None:
        self._writer.write(word)

    async def hears(self, word: bytes, timeout_s: float) -> bool:
        """Whether it comes back in time. Raises ConnectionResetError if somebody reset the connection."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._reader.readexactly(len(word)) == word
        except TimeoutError:
            return False

    def close(self) -> None:
        self._writer.close()


async def play(place: Place) -> None:
    """Say a word each way through: lost while the cable drops it, delivered late once it is healed."""
    assert place.cable is not None
    command = (*place.enter, sys.executable, "-I", "-c", _ECHO, place.host)
    peer = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert peer.stdout is not None
    echo = Echo(*await asyncio.open_connection(place.host, int(await peer.stdout.readline())))
    try:
        echo.say(b"word")
        print("whole:", await echo.hears(b"word", _ANSWER_S))
        for name, sent, received in (("sent", True, False), ("received", False, True), ("both", True, True)):
            place.cable.drop(sent=sent, received=received)
            echo.say(b"word")
            print(f"{name} dropped:", await echo.hears(b"word", _SILENCE_S))
            place.cable.heal(sent=sent, received=received)
            print(f"{name} healed:", await echo.hears(b"word", _ANSWER_S))
    finally:
        echo.close()
        await peer.wait()


if __name__ == "__main__":
    with apart(1) as places:
        asyncio.run(play(places.replicas[0]))
