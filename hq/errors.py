"""The error tree of hq.v1, which the front shares; see serving/errors.py."""

from serving.errors import *  # noqa: F403
