"""Delivers records to webhooks: the messages, how they are signed, and to which addresses they may go."""
