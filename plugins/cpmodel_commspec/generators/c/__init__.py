"""Generator of C programs that communicate like the run."""

from cpmodel_commspec.generators.c.source import c_source

__all__ = ["c_source"]
