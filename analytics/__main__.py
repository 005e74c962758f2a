"""`python -m analytics` is `runlake`."""

from analytics.cli import main

if __name__ == "__main__":
    main()
