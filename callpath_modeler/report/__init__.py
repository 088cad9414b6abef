"""Results as text, without files and colours."""
