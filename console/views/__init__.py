"""The content of pages, computed from the answers of servers. No I/O."""
