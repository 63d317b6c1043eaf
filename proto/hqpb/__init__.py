"""The messages and services of HQ, generated from the .proto files beside this one."""
