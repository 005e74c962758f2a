"""How much is read at once unless the caller says otherwise; what is larger is refused by name."""

MAX_LINE_BYTES = 32 << 20
MAX_DOCUMENT_BYTES = 512 << 20
MAX_RATIO = 1000  # a compressed file may expand to this many times its size
