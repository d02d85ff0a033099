"""`python -m popdyn`: the command line."""

import sys

from popdyn.cli import main

if __name__ == "__main__":
    sys.exit(main())
