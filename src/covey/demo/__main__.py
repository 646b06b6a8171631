"""`python -m covey.demo`."""

import sys

from covey.demo.stage import main

if __name__ == "__main__":
    sys.exit(main())
