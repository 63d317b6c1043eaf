"""Roll-outs: which instances are switched next, and when a roll-out has failed. Pure: no I/O, time is given."""
