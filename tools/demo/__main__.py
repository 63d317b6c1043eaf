"""`python -m tools.demo`."""

from tools.demo.main import cli

cli()
