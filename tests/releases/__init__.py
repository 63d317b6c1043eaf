"""The last release beside this version: servers on one store, agents and clients with servers of the other version."""
