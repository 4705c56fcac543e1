"""The HTTP toolkit: requests, bodies, answers, and problems, without knowledge of any resource."""
