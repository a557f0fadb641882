"""Run an intake: `python -m services.intake.main`, settings from LEASEHOLD_*."""

import sys

from leasehold.intake.process import run_intake

if __name__ == "__main__":
    sys.exit(run_intake())
