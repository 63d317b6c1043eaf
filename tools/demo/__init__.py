"""`make demo`: three locations, a gateway and 300 simulated agents on this machine, to look at and to break."""
