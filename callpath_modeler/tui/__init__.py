"""The browser of `cpmodel browse`: a session, which knows what is shown, and widgets that draw it.

Nothing here is imported before the browser starts, because its toolkit takes long to import.
"""
