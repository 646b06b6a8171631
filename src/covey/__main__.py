"""`python -m covey` is `covey`."""

import sys

from covey.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
