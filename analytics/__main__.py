"""`python -m analytics` is `runlake`."""

from analytics.entry import main

if __name__ == "__main__":
    main()
