"""hqctl, the operators' command. `main.py` lists the commands; each is imported when it is used."""
