"""`make cloud`: the registry and everybody who acts on it, on this machine, with simulated instances."""
