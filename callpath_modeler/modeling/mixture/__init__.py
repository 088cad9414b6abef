"""The mixture method: every hypothesis gets a probability, predictions come from all of them."""
