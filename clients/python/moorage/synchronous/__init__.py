"""The synchronous client, which `make client` makes from the asynchronous one."""
