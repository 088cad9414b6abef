"""Predicted run times: the program on a network with the parameters of LogGP, or on SimGrid."""
