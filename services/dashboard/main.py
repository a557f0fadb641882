"""Run the dashboard: `python -m services.dashboard.main`, settings from LEASEHOLD_*."""

import sys

from leasehold.dashboard.process import run_dashboard

if __name__ == "__main__":
    sys.exit(run_dashboard())
