"""What is done about a broken host, and when. Pure: no I/O, time comes in."""
