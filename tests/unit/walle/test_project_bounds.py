"""A project larger than the limits, from before they existed: it may shrink but not grow."""

from __future__ import annotations

import pytest

from control.errors import Refused
from tests.support.walle.book import DictBook
from tests.support.walle.hosts import a_project
from walle.work.book import PROJECT
from walle.work.projects import update_project
from wallepb.v1.host_pb2 import OPERATION_KIND_REBOOT
from wallepb.v1.project_pb2 import Scheme
from wallepb.v1.service_pb2 import UpdateProjectRequest

OWNERS = [f"o{number}" for number in range(300)]
LONG = Scheme(check="ssh", step=[OPERATION_KIND_REBOOT] * 21)
LONGER = Scheme(check="ssh", step=[OPERATION_KIND_REBOOT] * 22)


def big_project() -> DictBook:
    book, project = DictBook(), a_project()
    project.owners[:] = OWNERS
    project.scheme.append(LONG)
    book.put(PROJECT, "web", project)
    return book


@pytest.mark.parametrize(
    "order",
    [
        UpdateProjectRequest(set_scheme=True, scheme=[LONG, Scheme(check="dns")]),
        UpdateProjectRequest(set_owners=True, owners=OWNERS[1:]),
        UpdateProjectRequest(set_notifications=True),
    ],
)
def test_an_oversized_project_takes_updates_that_do_not_make_it_larger(order: UpdateProjectRequest) -> None:
    order.project = "web"
    update_project(big_project(), order, "ada")


@pytest.mark.parametrize(
    ("order", "why"),
    [
        (UpdateProjectRequest(set_owners=True, owners=[*OWNERS, "me"]), "owners: 301 are too many"),
        (UpdateProjectRequest(set_scheme=True, scheme=[LONGER]), "scheme: a check has at most 20 steps"),
    ],
)
def test_an_update_that_makes_an_oversized_project_larger_is_refused(order: UpdateProjectRequest, why: str) -> None:
    order.project = "web"
    with pytest.raises(Refused, match=why):
        update_project(big_project(), order, "ada")
