"""Rooms that know nothing of profiles: files, parallel work, small languages, limits."""
