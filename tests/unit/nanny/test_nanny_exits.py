"""Exit codes of many results, and what a refusal says."""

from __future__ import annotations

import pytest

from hqcli.exits import Exit
from nannyctl.exits import worst
from nannyctl.sending.results import UploadOutcome, failure


@pytest.mark.parametrize(
    ("exits", "code"),
    [
        ([], Exit.OK),
        ([Exit.OK, Exit.OK], Exit.OK),
        ([Exit.UNAVAILABLE, Exit.UNAVAILABLE], Exit.UNAVAILABLE),
        ([Exit.OK, Exit.UNAVAILABLE], Exit.PARTIAL),
        ([Exit.OK, Exit.PARTIAL], Exit.PARTIAL),
        ([Exit.CONFLICT, Exit.OK], Exit.CONFLICT),
        ([Exit.CONFLICT, Exit.UNAVAILABLE], Exit.CONFLICT),
        ([Exit.CONFLICT, Exit.REFUSED], Exit.REFUSED),
        ([Exit.NOT_YET, Exit.UNAVAILABLE], Exit.NOT_YET),
    ],
)
def test_the_exit_code_of_many_results_is_that_common_to_all_failures(exits: list[Exit], code: Exit) -> None:
    assert worst(exits) is code


def test_a_refusal_names_the_field_without_its_place_in_the_batch() -> None:
    result = failure("web-1", "INVALID_ARGUMENT", "INVALID_REQUEST", "is too long", "instance[3].spec.node_name")
    assert (result.outcome, result.message) == (UploadOutcome.REFUSED, "spec.node_name: is too long")
