"""The project's root folder and that of its client package, whatever folder a test is in."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLIENT = ROOT / "clients" / "python"
