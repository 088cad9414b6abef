"""`python -m callpath_modeler` is `cpmodel`."""

from callpath_modeler.cli import main

if __name__ == "__main__":
    main()
