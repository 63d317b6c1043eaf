"""What the store keeps of its own beside the records of whoever uses it, generated from the .proto file beside this one."""
