"""TOML files that users write: their formats, and the lines of their keys."""
