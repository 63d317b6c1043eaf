"""What instances may say and how much of it."""

import pytest

from hq.validation import MAX_RECORD_BYTES, check_instance_update, check_new_instance, check_revision
from hqpb.v1.instance_pb2 import REVISION_TARGET_READY, Instance, InstanceMeta, InstanceRevision, InstanceSpec
from serving.errors import InvalidRequest

UNKNOWN_FIELD = b"\xc2\x3e\x02z1"  # number 1000, "z1"


@pytest.fixture
def instance() -> Instance:
    return Instance(meta=InstanceMeta(id="search-1", service_id="search"), spec=InstanceSpec())


def faults_of(instance: Instance) -> list[str]:
    with pytest.raises(InvalidRequest) as refusal:
        check_new_instance(instance)
    return [violation.field for violation in refusal.value.violations]


def test_an_instance_without_anything_lacks_its_ids() -> None:
    assert faults_of(Instance()) == ["instance.meta.id", "instance.meta.service_id"]


def test_an_instance_without_revisions_and_allocation_is_legal(instance: Instance) -> None:
    check_new_instance(instance)


def test_unknown_fields_outside_meta_spec_and_status_are_refused(instance: Instance) -> None:
    instance.MergeFromString(UNKNOWN_FIELD)
    assert faults_of(instance) == ["instance"]
    with pytest.raises(InvalidRequest, match=r"5 bytes of fields besides meta, spec and status .* would be lost"):
        check_instance_update(instance)


def test_unknown_fields_inside_meta_spec_and_status_are_accepted(instance: Instance) -> None:
    for part in (instance.meta, instance.spec, instance.spec.revision.add(id="r1")):
        part.MergeFromString(UNKNOWN_FIELD)
    check_new_instance(instance)
    instance.status.MergeFromString(UNKNOWN_FIELD)
    check_instance_update(instance)


def test_all_faults_are_named_at_once(instance: Instance) -> None:
    instance.meta.labels["no key"] = "x"
    instance.spec.allocation.port.add(name="http", number=70_000)
    instance.spec.revision.add(id="r1").container.add(name="a/b")
    assert faults_of(instance) == [
        'instance.meta.labels["no key"]',
        "instance.spec.allocation.port[0].number",
        "instance.spec.revision[0].container[0].name",
    ]


def test_no_more_than_twenty_faults_are_named(instance: Instance) -> None:
    for _ in range(50):
        instance.spec.revision.add(id="?")
    assert len(faults_of(instance)) == 20


def test_no_refusal_is_longer_than_a_grpc_trailer_can_carry(instance: Instance) -> None:
    for number in range(64):
        instance.meta.labels[f"{number}" + "ü" * 1000] = "x"
    with pytest.raises(InvalidRequest) as refusal:
        check_new_instance(instance)
    # As words, and once more as details in base64.
    assert len(str(refusal.value)) * (1 + 4 / 3) < 8192


def test_ids_at_the_edge_of_the_alphabet_are_taken(instance: Instance) -> None:
    instance.meta.id = "._:@-" + "Aa0" * 82 + "zz"
    assert len(instance.meta.id) == 253
    check_new_instance(instance)


@pytest.mark.parametrize("revision_id", ["", "a b", "a/b", "a\n", "ü", "x" * 254, ".", ".."])
def test_a_malformed_revision_id_is_refused(instance: Instance, revision_id: str) -> None:
    instance.spec.revision.add(id=revision_id)
    assert faults_of(instance) == ["instance.spec.revision[0].id"]


def test_ids_that_begin_alike_are_different(instance: Instance) -> None:
    for revision_id in ("r1", "r10", "r1.", "R1"):
        instance.spec.revision.add(id=revision_id)
    check_new_instance(instance)


def test_at_most_one_revision_may_be_wanted_ready(instance: Instance) -> None:
    for revision_id in ("r0", "r1", "r2"):
        instance.spec.revision.add(id=revision_id)
    instance.spec.revision[0].target = REVISION_TARGET_READY
    check_new_instance(instance)
    instance.spec.revision[2].target = REVISION_TARGET_READY
    assert faults_of(instance) == ["instance.spec.revision[2].target"]


def test_names_and_numbers_of_allocated_ports_are_unique(instance: Instance) -> None:
    ports = instance.spec.allocation.port
    ports.add(name="http", number=80)
    ports.add(name="http", number=81)
    ports.add(name="admin", number=80)
    assert faults_of(instance) == [
        "instance.spec.allocation.port[1].name",
        "instance.spec.allocation.port[2].number",
    ]


def test_several_ports_may_be_requested_without_numbers(instance: Instance) -> None:
    for name in ("http", "admin"):
        instance.spec.resource_request.port.add(name=name)
    check_new_instance(instance)


def test_an_allocated_port_has_a_number(instance: Instance) -> None:
    instance.spec.allocation.port.add(name="http")
    assert faults_of(instance) == ["instance.spec.allocation.port[0].number"]


@pytest.mark.parametrize("host", ["10.0.0.1", "fe80::1%eth0", "node-1.example.net"])
def test_an_address_or_a_name_is_accepted_as_host(instance: Instance, host: str) -> None:
    instance.spec.allocation.host = host
    check_new_instance(instance)


def test_a_negative_amount_that_arrives_as_a_huge_one_is_refused(instance: Instance) -> None:
    minus_one = b"\x08" + b"\xff" * 9 + b"\x01"
    instance.spec.resource_request.MergeFromString(minus_one)
    assert faults_of(instance) == ["instance.spec.resource_request.cpu_millicores"]


def test_the_numbers_of_labels_and_annotations_are_limited(instance: Instance) -> None:
    for number in range(65):
        instance.meta.labels[f"k{number}"] = instance.meta.annotations[f"k{number}"] = ""
    assert faults_of(instance) == ["instance.meta.labels", "instance.meta.annotations"]


def test_a_label_may_be_empty_and_in_any_script(instance: Instance) -> None:
    instance.meta.labels.update({"engine": "", "example.com/size": "größer"})
    check_new_instance(instance)


def test_the_number_of_revisions_is_limited(instance: Instance) -> None:
    for number in range(65):
        instance.spec.revision.add(id=f"r{number}")
    assert faults_of(instance) == ["instance.spec.revision"]


def test_a_record_is_taken_up_to_256_kib_and_not_beyond(instance: Instance) -> None:
    image = instance.spec.revision.add(id="r1").container.add(name="main")
    image.image = "x" * (MAX_RECORD_BYTES - 200)
    image.image += "x" * (MAX_RECORD_BYTES - instance.meta.ByteSize() - instance.spec.ByteSize())
    check_new_instance(instance)
    image.image += "x"
    assert faults_of(instance) == ["instance"]
    with pytest.raises(InvalidRequest, match=r"^instance: 262145 bytes are too large"):
        check_instance_update(instance)


def test_an_instance_of_full_size_may_be_sent_back_as_it_was_read(instance: Instance) -> None:
    image = instance.spec.revision.add(id="r1").container.add(name="main")
    image.image = "x" * (MAX_RECORD_BYTES - 200)
    image.image += "x" * (MAX_RECORD_BYTES - instance.meta.ByteSize() - instance.spec.ByteSize())
    instance.meta.uid = (1 << 63) - 1
    instance.meta.creation_time.seconds = 1_700_000_000
    instance.spec.revision[0].secret_count = 3
    check_instance_update(instance)


def test_secret_descriptors_have_a_size_limit_of_their_own(instance: Instance) -> None:
    revision = instance.spec.revision.add(id="r1")
    revision.container.add(name="main", image="x" * (MAX_RECORD_BYTES - 1000))
    for number in range(200):
        revision.secret.add(name=f"s{number}", provider="vault", id="i" * 1000, environment_variable="S")
    check_new_instance(instance)
    for number in range(200, 300):
        revision.secret.add(name=f"s{number}", provider="vault", id="i" * 1000, environment_variable="S")
    assert faults_of(instance) == ["instance"]


def test_a_new_instance_that_lacks_its_secret_descriptors_is_refused(instance: Instance) -> None:
    instance.spec.revision.add(id="r1", secret_count=2)
    assert faults_of(instance) == ["instance.spec.revision[0].secret_count"]
    check_instance_update(instance)


def test_an_update_of_other_fields_needs_no_service(instance: Instance) -> None:
    instance.meta.service_id = ""
    check_instance_update(instance, service_required=False)
    with pytest.raises(InvalidRequest, match=r"^item\[3\]\.meta\.service_id: "):
        check_instance_update(instance, "item[3]")


def test_faults_of_a_revision_sent_alone_have_paths_from_the_revision() -> None:
    revision = InstanceRevision(id="r1")
    revision.container.add(name="main").readiness_check.tcp.port = ""
    with pytest.raises(InvalidRequest, match=r"^revision\.container\[0\]\.readiness_check\.tcp\.port: "):
        check_revision(revision)


def test_a_revision_sent_alone_is_checked_for_its_size_and_enums() -> None:
    with pytest.raises(InvalidRequest, match=r"^revision: \d+ bytes are too large"):
        check_revision(InstanceRevision(id="r" * MAX_RECORD_BYTES))
    with pytest.raises(InvalidRequest, match=r"^revision\.target: 9 is not a valid RevisionTarget"):
        check_revision(InstanceRevision.FromString(b"\x0a\x01r\x10\x09"))


def test_a_refusal_says_what_to_do_next(instance: Instance) -> None:
    instance.spec.allocation.port.add(name="http", number=70_000)
    with pytest.raises(InvalidRequest) as refusal:
        check_new_instance(instance)
    said = "instance.spec.allocation.port[0].number: 70000 is not a valid port: use 1 to 65535"
    assert str(refusal.value) == said
