"""One page that says everything: HTML that needs no network, no server and no JavaScript."""
