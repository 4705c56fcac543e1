"""Admission: completes and checks objects, and returns warnings, before they are stored."""
