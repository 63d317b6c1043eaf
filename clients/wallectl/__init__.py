"""The command `walle`: projects, hosts, limits, scenarios."""
