"""What talks to HQ over its API: the client library and the command line tools."""
