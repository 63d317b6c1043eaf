"""See main.py."""

from tools.cloud.main import cli

if __name__ == "__main__":
    cli(prog_name="make cloud")
