"""What lies in etcd; nothing outside of HQ reads it."""
