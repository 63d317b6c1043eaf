"""What HQ's commands share: the command group, flags for servers and credentials, hand-written files."""
