"""The asynchronous client; the synchronous one is made from it, by `make client`."""
