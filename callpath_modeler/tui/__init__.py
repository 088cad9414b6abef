"""The browser of `cpmodel browse`: a session with the state, and widgets that draw it.

Nothing here is imported before the browser starts, because its toolkit takes long to import.
"""
