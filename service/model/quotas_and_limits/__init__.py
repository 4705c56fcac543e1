"""Resource quotas and limit ranges: what a namespace may ask for."""
