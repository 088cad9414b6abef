"""Runs of a program, operation by operation: matching, wildcards and deadlocks."""
