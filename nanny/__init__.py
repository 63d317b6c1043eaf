"""Nanny decides what runs: services, their snapshots and states, and roll-outs that never drop below the floor."""
