"""Run the changefeed: `python -m services.changefeed.main`, settings from LEASEHOLD_*."""

import sys

from leasehold.changefeed.process import run_changefeed

if __name__ == "__main__":
    sys.exit(run_changefeed())
