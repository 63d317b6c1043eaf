"""What can be ordered: the same by a key and by the second command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from tools.demo.lines import lines_of
from tools.demo.locations import Location, Refused
from tools.demo.setting import LOCATIONS, NODES_PER_LOCATION, SERVICES
from tools.demo.stage import Cast, Stage

DEFAULT_SERVICE = SERVICES[0]
_TENTH = max(1, NODES_PER_LOCATION // 10)


class Usage(NamedTuple):
    """How an order is given, and what it does."""

    order: str
    arguments: str
    effect: str


USAGES = (
    Usage("kill-replica", "LOCATION [1|2]", "SIGKILL a replica: the other goes on"),
    Usage("start-replica", "LOCATION [1|2]", "bring it back"),
    Usage("stop-location", "LOCATION", "stop its etcd and its replicas: discovery keeps what it knew"),
    Usage("start-location", "LOCATION", "start them again, on the same data"),
    Usage("silence", "LOCATION 10%|all", "agents fall silent: a tenth more of them, or all (the guard holds that)"),
    Usage("wake", "LOCATION", "they speak again"),
    Usage("deploy", "[SERVICE]", "a new revision, rolled over the agents; the old one stays installed"),
    Usage("rollback", "[SERVICE]", "back to the revision before"),
    Usage("show", "", "what discovery sees"),
)


class Orders:
    """Obeys orders. Each raises Refused, or what went wrong."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._orders: dict[str, Callable[[Cast, Sequence[str]], Awaitable[str]]] = {
            "kill-replica": self._kill_replica,
            "start-replica": self._start_replica,
            "stop-location": self._stop_location,
            "start-location": self._start_location,
            "silence": self._silence,
            "wake": self._wake,
            "deploy": self._deploy,
            "rollback": self._roll_back,
            "show": self._show,
        }

    async def obey(self, words: Sequence[str]) -> str:
        """Carry out an order; return what was done.

        Raises:
            Refused: it is not known, or makes no sense as things stand.
        """
        name, *arguments = words or [""]
        order = self._orders.get(name)
        if order is None:
            raise Refused(f"there is no order {name!r}: there are {', '.join(self._orders)}")
        done = await order(self._stage.cast, arguments)
        if name != "show":
            self._stage.events.say(f"order: {done}")
        return done

    async def _kill_replica(self, _: Cast, arguments: Sequence[str]) -> str:
        location, number = self._replica(arguments)
        return f"killed replica {(await location.kill_replica(number)).name}"

    async def _start_replica(self, _: Cast, arguments: Sequence[str]) -> str:
        location, number = self._replica(arguments)
        return f"replica {(await location.start_replica(number)).name} serves again"

    async def _stop_location(self, _: Cast, arguments: Sequence[str]) -> str:
        location = self._location(arguments)
        await location.stop()
        return f"stopped {location.name}"

    async def _start_location(self, _: Cast, arguments: Sequence[str]) -> str:
        location = self._location(arguments)
        await location.start()
        return f"{location.name} serves again"

    async def _silence(self, cast: Cast, arguments: Sequence[str]) -> str:
        crew, share = cast.crews[self._location(arguments[:1]).name], arguments[1:]
        if share not in (["10%"], ["all"]):
            raise Refused("say how many: 10% or all")
        nodes = crew.silence(_TENTH if share == ["10%"] else NODES_PER_LOCATION)
        return (
            f"silenced {len(nodes)} of {NODES_PER_LOCATION} nodes of {crew.name}, {crew.silent} agents are silent now"
        )

    async def _wake(self, cast: Cast, arguments: Sequence[str]) -> str:
        crew = cast.crews[self._location(arguments).name]
        return f"woke {len(crew.wake())} nodes of {crew.name}"

    async def _deploy(self, cast: Cast, arguments: Sequence[str]) -> str:
        return cast.deployer.deploy(_service(arguments))

    async def _roll_back(self, cast: Cast, arguments: Sequence[str]) -> str:
        return cast.deployer.roll_back(_service(arguments))

    async def _show(self, _: Cast, __: Sequence[str]) -> str:
        return "\n".join(lines_of(self._stage.scene()))

    def _location(self, arguments: Sequence[str]) -> Location:
        location = self._stage.locations.get(arguments[0]) if len(arguments) == 1 else None
        if location is None:
            raise Refused(f"name a location: {', '.join(LOCATIONS)}")
        return location

    def _replica(self, arguments: Sequence[str]) -> tuple[Location, int | None]:
        """The location, and which replica; None: any."""
        number = arguments[1:]
        if number and not (len(number) == 1 and number[0].isdecimal()):
            raise Refused("name the replica by its number, or none")
        return self._location(arguments[:1]), int(number[0]) if number else None


def _service(arguments: Sequence[str]) -> str:
    service = arguments[0] if arguments else DEFAULT_SERVICE
    if service not in SERVICES or len(arguments) > 1:
        raise Refused(f"name one service: {', '.join(SERVICES)}")
    return service
