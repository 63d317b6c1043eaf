"""What a client asks for to read its own writes."""

from __future__ import annotations

from hqclient.own_writes import OwnWrites
from hqpb.v1 import service_pb2 as pb

STRONG = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)


def test_reads_ask_for_the_highest_own_version_in_its_epoch() -> None:
    own = OwnWrites()
    own.saw([pb.Source(epoch="e1")])
    own.wrote(7)
    own.wrote(5)
    assert own.required_options(pb.ReadOptions()) == pb.ReadOptions(min_version=7, epoch="e1")


def test_a_client_that_wrote_nothing_asks_for_nothing() -> None:
    own = OwnWrites()
    own.saw([pb.Source(epoch="e1")])
    assert own.required_options(pb.ReadOptions()) == pb.ReadOptions()


def test_read_options_of_the_caller_are_kept() -> None:
    own = OwnWrites()
    own.saw([pb.Source(epoch="e1")])
    own.wrote(7)
    strong = pb.ReadOptions(consistency=pb.READ_CONSISTENCY_STRONG)
    assert own.required_options(strong) == pb.ReadOptions(
        min_version=7, epoch="e1", consistency=pb.READ_CONSISTENCY_STRONG
    )
    assert own.required_options(pb.ReadOptions(min_version=3)) == pb.ReadOptions(min_version=3)


def test_another_epoch_voids_the_own_versions() -> None:
    own = OwnWrites()
    own.saw([pb.Source(epoch="e1")])
    own.wrote(7)
    own.saw([pb.Source(epoch="e2")])
    assert own.version == 0
    assert own.epoch == "e2"


def test_before_the_epoch_is_known_reads_are_strong() -> None:
    own = OwnWrites()
    own.wrote(7)
    assert own.required_options(pb.ReadOptions()) == STRONG


def test_a_version_of_one_cluster_is_never_demanded_of_another() -> None:
    own = OwnWrites()
    own.saw([pb.Source(cluster="east", epoch="e1")])
    own.wrote(7, "east")
    assert own.required_options(pb.ReadOptions()).min_version == 7
    own.saw([pb.Source(cluster="east", epoch="e1"), pb.Source(cluster="west", epoch="x1")])
    assert own.required_options(pb.ReadOptions()) == STRONG
    own.forget()
    own.saw([pb.Source(cluster="west", epoch="x2")])
    assert own.required_options(pb.ReadOptions()) == STRONG


def test_a_write_to_another_cluster_than_the_one_read_makes_reads_strong() -> None:
    own = OwnWrites()
    own.saw([pb.Source(cluster="east", epoch="e1")])
    own.wrote(7, "west")
    assert own.required_options(pb.ReadOptions()) == STRONG
