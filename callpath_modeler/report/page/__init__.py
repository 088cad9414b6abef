"""The HTML page, which needs no network, no server and no JavaScript."""
