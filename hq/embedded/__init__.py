"""A real etcd as a child process: what `hq dev` and the tests run on. In production etcd is a cluster."""

from hq.embedded.binary import EtcdBinary, EtcdNotFound, etcd_of_wheel, etcd_on_path, find_etcd
from hq.embedded.process import AddressInUse, EtcdFailed, EtcdProcess, Member
from hq.embedded.server import DataDirInUse, EmbeddedEtcd, free_ports

__all__ = [
    "AddressInUse",
    "DataDirInUse",
    "EmbeddedEtcd",
    "EtcdBinary",
    "EtcdFailed",
    "EtcdNotFound",
    "EtcdProcess",
    "Member",
    "etcd_of_wheel",
    "etcd_on_path",
    "find_etcd",
    "free_ports",
]
