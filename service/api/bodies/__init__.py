"""What requests and answers carry: read strictly, held within a budget of bytes, written in pieces."""
