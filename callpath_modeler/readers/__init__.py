"""From files to profiles: the reader contract, the readers installed, the runs found on disk."""
