"""Small data in etcd, followed in memory: sessions, fences, group commit, epochs. Knows nothing of what it holds."""
