"""Admission: objects are completed, checked, and warned about before they are stored."""
