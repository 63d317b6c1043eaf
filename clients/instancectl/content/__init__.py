"""Making a revision installed: fetched, unpacked, with its secrets delivered."""
