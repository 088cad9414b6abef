"""TOML files that people write: where everything stands in them, and what may."""
