"""Score-P profiles: CUBE 4 (`.cubex`) and CUBE 3 (`.cube`, `.cube.gz`)."""
