"""The entry point of Spark's driver, `python -m spark_streaming.main`; settings from
LEASEHOLD_*."""

import sys

from leasehold.model.errors import ConfigurationError
from leasehold.settings.extras import need_extra


def main() -> int:
    """Run the driver; return its exit code, or 2 where Spark is not installed."""
    try:
        need_extra("spark", "Spark's driver", "pyspark", "pandas", "pyarrow")
    except ConfigurationError as error:
        print(f"leasehold spark: {error}", file=sys.stderr)
        return 2
    from spark_streaming import driver  # imports pyspark

    return driver.main()


if __name__ == "__main__":
    sys.exit(main())
