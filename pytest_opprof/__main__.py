"""``python -m pytest_opprof`` is the command ``opprof``."""

import sys

from pytest_opprof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
