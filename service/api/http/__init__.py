"""The HTTP toolkit: requests, bodies, answers, and problems, independent of any resource."""
