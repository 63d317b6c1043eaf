"""nanny, the deploy system's uploader. `main.py` lists the commands; each is imported when it is used."""
