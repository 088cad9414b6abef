"""Scalability models, excess work and predicted ranks for every call path of an application."""
