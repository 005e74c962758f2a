"""One maker per wire: each writes runs that follow the wire to the letter, and adds up the truth while it writes."""
