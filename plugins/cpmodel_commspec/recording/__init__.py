"""From the events of a trace to the operations of every rank, with their times."""
