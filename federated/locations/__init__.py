"""The locations of a gateway: their replicas, whether they answer, whom to ask, how long to wait."""
