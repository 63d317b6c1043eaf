"""Selectors of labels: what they require, and where one is wrong."""

from __future__ import annotations

import pytest

from hqcli.selectors import BadSelector, is_met, put_selector
from hqctl.asking.options import is_meant
from hqpb.v1 import instance_pb2 as model
from hqpb.v1 import service_pb2 as pb

IN, NOT_IN = pb.LABEL_OPERATOR_IN, pb.LABEL_OPERATOR_NOT_IN
TRUE, FALSE = model.CONDITION_STATUS_TRUE, model.CONDITION_STATUS_FALSE
EXISTS, ABSENT = pb.LABEL_OPERATOR_EXISTS, pb.LABEL_OPERATOR_DOES_NOT_EXIST


@pytest.mark.parametrize(
    ("text", "labels", "required"),
    [
        ("engine=php,tier==1", {"engine": "php", "tier": "1"}, []),
        ("a=", {"a": ""}, []),
        ("a=1,a=2", {"a": "1"}, [("a", IN, ["2"])]),
        ("a!=b", {}, [("a", NOT_IN, ["b"])]),
        ("a in (b)", {"a": "b"}, []),
        ("a in (b, c),d notin(e,)", {}, [("a", IN, ["b", "c"]), ("d", NOT_IN, ["e", ""])]),
        (" hq.io/tier , !old", {}, [("hq.io/tier", EXISTS, []), ("old", ABSENT, [])]),
        ("in in (in)", {"in": "in"}, []),
    ],
)
def test_a_selector_is_read_as_kubectl_reads_it(
    text: str, labels: dict[str, str], required: list[tuple[str, int, list[str]]]
) -> None:
    where = pb.InstanceFilter()
    put_selector(text, where)
    assert dict(where.labels) == labels
    assert [(one.key, one.operator, list(one.value)) for one in where.label_requirement] == required


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "character 1, at its end: expected a key"),
        ("=b", "character 1, before '=': expected a key"),
        ("a=1,", "character 5, at its end: expected a key"),
        ("a in b", "character 6, before 'b': expected '(' after in"),
        ("a in (b", "character 8, at its end: expected ','"),
        ("a notin (b;c) d", "character 15, before 'd': expected ','"),
        ("tier exists", "character 6, before 'exists': expected ','"),
        ("!", "character 2, at its end: expected a key"),
        ("a==(b)", "character 4, before '(': expected a value"),
    ],
)
def test_a_selector_that_is_wrong_says_at_which_character(text: str, said: str) -> None:
    where = pb.InstanceFilter()
    with pytest.raises(BadSelector, match=r"write e\.g\.") as fault:
        put_selector(text, where)
    assert said in str(fault.value)
    assert not where.ByteSize()


@pytest.mark.parametrize(
    ("text", "meets", "misses"),
    [
        ("a in (b,c)", {"a": "c"}, {"a": "d"}),
        ("a notin (b)", {}, {"a": "b"}),
        ("a", {"a": ""}, {}),
        ("!a", {"b": ""}, {"a": ""}),
    ],
)
def test_labels_are_compared_with_a_requirement(text: str, meets: dict[str, str], misses: dict[str, str]) -> None:
    where = pb.InstanceFilter()
    put_selector(text, where)
    [one] = where.label_requirement
    assert is_met(one, meets)
    assert not is_met(one, misses)


def test_instances_that_an_older_replica_did_not_filter_out_are_dropped() -> None:
    """An older replica ignores filters it does not know: by silent agents, and all of a selector but `=`."""
    where, silent, heard, unsaid = pb.InstanceFilter(), model.Instance(), model.Instance(), model.Instance()
    silent.status.agent.status, heard.status.agent.status = FALSE, TRUE
    assert all(is_meant(one, where) for one in (silent, heard, unsaid))
    where.agent = pb.AGENT_FILTER_SILENT
    assert [is_meant(one, where) for one in (silent, heard, unsaid)] == [True, False, False]
    put_selector("canary", where)
    assert not is_meant(silent, where)
    silent.meta.labels["canary"] = ""
    assert is_meant(silent, where)
