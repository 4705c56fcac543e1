"""Deliver records to webhooks: their messages, signatures, and allowed addresses."""
