"""What agents, programs and other people say reaches a terminal as text: nothing in it is an order to the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hqcli.complaints import complainer
from hqcli.terminal import escape_controls, lines, warn
from hqctl.commands.explaining import _print
from hqpb.v1 import service_pb2 as pb
from hqpb.v1.instance_pb2 import REVISION_TARGET_READY as READY
from nannyctl.output.services import service_words, table
from nannypb.v1 import service_pb2 as nanny_pb

if TYPE_CHECKING:
    from collections.abc import Callable

EVIL = "\x1b]52;c;cm0=\x07\x9b2J\u202edaer"
SPELLED = "\\x1b]52;c;cm0=\\x07\\x9b2J\\u202edaer"


def explanation() -> pb.ExplainInstanceResponse:
    made = pb.ExplainInstanceResponse()
    made.meta.id = "web-1"
    one = made.revision.add(id="r1", target=READY, last_heartbeat_time={"seconds": 1})
    one.ready.message = EVIL
    container = one.container.add(name="main", isolation=EVIL)
    container.last_termination.message = container.last_termination.output = EVIL
    return made


@pytest.mark.parametrize(
    "say",
    [
        lambda: _print(explanation(), ()),
        lambda: warn(EVIL),
        lambda: complainer("hqctl")(EVIL),
        lambda: print(*lines(("BY", "WHY"), ((EVIL, EVIL),))),
        lambda: print(table(("BY",), ((EVIL,),))),
        lambda: print(service_words(nanny_pb.Service(id="web", stuck=EVIL))),
    ],
)
def test_what_others_say_controls_no_terminal(say: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    say()
    said = "".join(capsys.readouterr())
    assert SPELLED in said
    assert not set(EVIL[0] + "\x07\x9b\u202e").intersection(said)


def test_what_is_text_stays() -> None:
    assert escape_controls("two\nlines, ü, 漢, …, 🙂") == "two\nlines, ü, 漢, …, 🙂"
