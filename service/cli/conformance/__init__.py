"""`moorage conformance`: vectors of cases, and what a server answers to them."""
