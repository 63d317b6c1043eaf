"""What hqctl's tables say of an instance."""

from __future__ import annotations

import pytest

from historypb.v1.history_pb2 import FindInstancesAtResponse
from hqcli.terminal import fit_columns, plain
from hqctl.commands.history import _union
from hqctl.output.rows import Columns, endpoints, readiness, revision, spans_clusters
from hqpb.v1 import instance_pb2 as pb

NOW_S = 1_700_000_000.0
YES, NO = pb.CONDITION_STATUS_TRUE, pb.CONDITION_STATUS_FALSE


def an_instance() -> pb.Instance:
    instance = pb.Instance()
    instance.meta.id, instance.meta.service_id, instance.meta.cluster = "web-1", "web", "dc1"
    instance.spec.node_name = "node-7"
    instance.spec.revision.add(id="v1", target=pb.REVISION_TARGET_INSTALLED)
    instance.spec.revision.add(id="v2", target=pb.REVISION_TARGET_READY)
    return instance


def test_a_row_says_what_an_operator_needs_first() -> None:
    instance = an_instance()
    instance.status.ready.status = YES
    instance.status.revision.add(id="v2", ready=pb.Condition(status=YES))
    instance.status.last_heartbeat_time.FromSeconds(int(NOW_S) - 200)
    assert Columns().row(instance, NOW_S) == ["web-1", "web", "node-7", "yes", "v2", "3m20s"]


def test_an_unknown_value_is_shown_as_a_dash() -> None:
    assert Columns().row(pb.Instance(meta=pb.InstanceMeta(id="a")), NOW_S) == ["a", "-", "-", "unknown", "-", "-"]


def test_not_ready_says_why() -> None:
    instance = an_instance()
    instance.status.ready.status = NO
    instance.status.revision.add(id="v2", ready=pb.Condition(status=NO, reason="HeartbeatTimeout"))
    assert readiness(instance) == "no:HeartbeatTimeout"


def test_a_revision_that_is_ready_in_place_of_the_wanted_one_is_named() -> None:
    instance = an_instance()
    instance.status.revision.add(id="v1", ready=pb.Condition(status=YES))
    assert revision(instance) == "v2(now:v1)"


def test_an_instances_own_address_takes_the_place_of_its_node() -> None:
    instance = an_instance()
    instance.spec.allocation.port.add(name="http", number=8080)
    assert endpoints(instance) == "http=node-7:8080"
    instance.spec.allocation.host = "10.0.0.7"
    assert endpoints(instance) == "http=10.0.0.7:8080"


def test_the_cluster_is_shown_when_several_clusters_answer() -> None:
    assert not spans_clusters([an_instance()], ["dc1"])
    assert spans_clusters([an_instance()], ["dc1", "dc2"])
    assert Columns(cluster=True).row(an_instance(), NOW_S)[0] == "dc1"


def test_output_to_a_pipe_is_aligned_and_not_cut() -> None:
    text = plain(("INSTANCE", "READY"), [["a" * 253, "yes"], ["b", "no"]])
    assert text.splitlines()[1] == "a" * 253 + "  yes"
    assert text.splitlines()[2].split() == ["b", "no"]


def test_on_a_narrow_terminal_the_widest_column_is_cut_and_ids_are_not() -> None:
    names = ("INSTANCE", "SERVICE", "NODE")
    rows = [["i" * 30, "s" * 20, "n" * 40]]
    assert fit_columns(names, rows, 200) == [30, 20, 40]
    widths = fit_columns(names, rows, 80)
    assert sum(widths) + 4 == 80
    assert widths[0] == 30
    assert fit_columns(names, rows, 20)[0] == 30


@pytest.mark.parametrize(("given", "text"), [(None, "100"), (100, "100"), (0, "0"), (7, "7")])
def test_a_weight_is_shown_even_if_not_given(given: int | None, text: str) -> None:
    row = Columns(wide=True).row(pb.Instance(meta=pb.InstanceMeta(id="a"), spec=pb.InstanceSpec(weight=given)), NOW_S)
    assert row[Columns(wide=True).names.index("WEIGHT")] == text


def test_answers_about_the_past_are_together_as_old_as_the_oldest() -> None:
    answers = [
        FindInstancesAtResponse(instance=[pb.Instance()], age={"seconds": 40}, gap="ams did not answer"),
        FindInstancesAtResponse(instance=[pb.Instance()], age={"seconds": 1, "nanos": 9}),
    ]
    for one, other in (answers, reversed(answers)):
        whole = _union(one, other)
        assert (len(whole.instance), whole.age.seconds, whole.age.nanos, whole.gap) == (2, 40, 0, "ams did not answer")
