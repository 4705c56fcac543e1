"""Bodies of requests are read strictly, held within a budget of bytes, and answered in pieces."""
