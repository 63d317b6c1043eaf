"""Nanny: what shall run. Services, their snapshots and states, and roll-outs that never drop below the floor."""
