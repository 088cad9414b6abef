"""Performance models: arrays in, arrays out; never sees a name or a path."""
