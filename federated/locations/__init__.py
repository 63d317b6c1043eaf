"""The locations of a front: their replicas, whether they answer, whom to ask, how long to wait."""
