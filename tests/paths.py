"""Tells the project's root folder, whatever folder a test is in."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
