"""Pages of lists."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor import MethodDescriptor

from cmspb.v1 import cms_pb2
from control.paging import MAX_PAGE_BYTES, page_of_records
from hqclient.errors import HqApiError
from hqclient.pages import ask_pages
from wallepb.v1 import service_pb2
from wallepb.v1.project_pb2 import Scenario


def test_a_page_is_limited_in_bytes_and_has_at_least_one_record() -> None:
    """Planned work on ten thousand hosts has 700 kB: an answer with a thousand of these is too large to take."""
    sizes = {"a": 10, "b": MAX_PAGE_BYTES // 2, "c": MAX_PAGE_BYTES // 2, "d": MAX_PAGE_BYTES * 2, "e": 10}
    records = {name: Scenario(id=name, message="x" * size) for name, size in sizes.items()}
    pages, token = list[list[str]](), ""
    while token or not pages:
        page, token = page_of_records(records, lambda one: True, 1_000, token)
        pages.append([one.id for one in page])
    assert pages == [["a", "b"], ["c"], ["d"], ["e"]]


LISTS = [
    method
    for pb in (cms_pb2, service_pb2)
    for service in pb.DESCRIPTOR.services_by_name.values()
    for method in service.methods
    if method.name.startswith("List")
]


@pytest.mark.parametrize("method", LISTS, ids=lambda method: method.name)
def test_every_list_has_pages(method: MethodDescriptor) -> None:
    asked, answered = method.input_type.fields_by_name, method.output_type.fields_by_name
    assert {"page_size", "page_token"} <= {*asked}
    assert "next_page_token" in answered


async def test_a_list_that_never_ends_is_refused() -> None:
    async def ask(_: service_pb2.ListScenariosRequest) -> service_pb2.ListScenariosResponse:
        return service_pb2.ListScenariosResponse(next_page_token="again")

    with pytest.raises(HqApiError, match="does not end"):
        await ask_pages(ask, service_pb2.ListScenariosRequest())
