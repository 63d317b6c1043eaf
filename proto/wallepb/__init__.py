"""The messages and services of Wall-E, generated from the .proto files beside this one."""
