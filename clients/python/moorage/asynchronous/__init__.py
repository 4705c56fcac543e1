"""The asynchronous client, from which `make client` generates the synchronous one."""
