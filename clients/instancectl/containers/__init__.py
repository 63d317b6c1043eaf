"""The running revision, container by container."""
