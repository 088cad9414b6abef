"""From the operations of all ranks to one program: loops, common lines, and computation."""
