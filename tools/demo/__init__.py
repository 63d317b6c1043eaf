"""`make demo`: three locations, a front and 300 simulated agents on this machine, to look at and to break."""
