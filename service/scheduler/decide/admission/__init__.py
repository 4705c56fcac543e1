"""What becomes of objects that come in before they are stored: merged, judged, warned about."""
