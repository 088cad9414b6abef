"""Plots for papers, drawn by matplotlib."""
