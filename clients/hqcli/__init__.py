"""What the commands of HQ share: the group of commands, flags of servers and credentials, files that people write."""
