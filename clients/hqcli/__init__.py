"""The common part of HQ's commands: the command group, flags for servers and credentials, hand-written files."""
