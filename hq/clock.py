"""Time, injected; see serving/clock.py."""

from serving.clock import *  # noqa: F403
