"""A real etcd as a child process, for the tests and for trying things out. In production etcd is a cluster."""

from store.embedded.binary import EtcdBinary, EtcdNotFound, built_etcd, etcd_of_wheel, etcd_on_path, find_etcd
from store.embedded.embedded_etcd import DataDirInUse, EmbeddedEtcd, free_ports
from store.embedded.process import AddressInUse, EtcdFailed, EtcdMember, EtcdProcess

__all__ = [
    "AddressInUse",
    "DataDirInUse",
    "EmbeddedEtcd",
    "EtcdBinary",
    "EtcdFailed",
    "EtcdMember",
    "EtcdNotFound",
    "EtcdProcess",
    "built_etcd",
    "etcd_of_wheel",
    "etcd_on_path",
    "find_etcd",
    "free_ports",
]
