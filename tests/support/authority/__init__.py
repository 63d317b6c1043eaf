"""Who may do what at every server, found out by calling: docs/security-matrix.txt, its part on all servers."""
