"""Models in several parameters: products of terms, and their slices along one parameter."""
