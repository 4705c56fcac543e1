"""Repairs: the smallest changes that make an unschedulable pod fit."""
