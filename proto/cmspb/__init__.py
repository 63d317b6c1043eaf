"""What every controller keeps in its store, generated from the .proto file beside this one."""
