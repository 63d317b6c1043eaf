"""The process `hq serve`: its options, listeners and workers, from the command line to the running server."""
