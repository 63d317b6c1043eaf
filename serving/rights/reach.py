"""The reach of a method: named where the table of methods defines it, and compared with the caller's grants.

    Reach(Of.SERVICE, ReachForm.CHECKED, check)

`check(request, access)` is called before the method, when the request is read: it finds out, from the request and from
what is stored, what would be reached, and raises PermissionDenied or OutOfReach. Without authentication it is not
called.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Final

from serving.rights.access import Access


class Of(StrEnum):
    """The kinds of things that a method reaches."""

    SERVICE = "service"
    NODE = "node"
    PROJECT = "project"
    INSTANCE = "instance"  # its service and its node
    TASK = "task"  # its owner
    LOCATION = "location"
    EVERYTHING = "everything"
    ONESELF = "oneself"


class ReachForm(StrEnum):
    """Where the reach is compared."""

    CHECKED = "checked"  # before the method
    EACH = "each"  # by the method, item by item of a batch: the answer says which were refused
    NARROWED = "narrowed"  # by the method: the answer shows what is within reach, and is as if nothing else existed
    STORED = "stored"  # by the method, against the record that it reads, in the transaction that changes it


Check = Callable[[Any, Access], object]


class Reach:
    """The reach of a method. Raises ValueError: it is to be checked, but has no check."""

    __slots__ = ("check", "form", "of")

    def __init__(self, of: Of, form: ReachForm, check: Check | None = None) -> None:
        if form is ReachForm.CHECKED and check is None and of is not Of.ONESELF:
            raise ValueError(f"a reach of {of} that is {form} needs a check")
        self.of, self.form, self.check = of, form, check

    def __repr__(self) -> str:
        return f"{self.of}, {self.form}"


def _nothing_left_out(_request: Any, access: Access) -> None:
    access.check_all()


EVERYTHING: Final = Reach(Of.EVERYTHING, ReachForm.CHECKED, _nothing_left_out)
ONESELF: Final = Reach(Of.ONESELF, ReachForm.CHECKED)
SHOWN: Final = Reach(Of.LOCATION, ReachForm.CHECKED, lambda _request, _access: None)
"""What every caller of the rule may see of the server itself, whatever its scope: nobody's names are in it."""


def on_each(of: Of) -> Reach:
    """The method compares each item of a batch."""
    return Reach(of, ReachForm.EACH)


def narrowed_reach(of: Of, check: Check | None = None) -> Reach:
    """The method's answer leaves out what is out of reach; `check` comes before it."""
    return Reach(of, ReachForm.NARROWED, check)


def stored_reach(of: Of, check: Check | None = None) -> Reach:
    """The method compares the record that it reads or changes; `check` comes before it."""
    return Reach(of, ReachForm.STORED, check)


def checked_reach(of: Of, check: Check) -> Reach:
    """The reach is compared before the method."""
    return Reach(of, ReachForm.CHECKED, check)
