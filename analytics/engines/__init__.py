"""Where the worker function runs: this machine's cores, or an engine that has more of them."""
