"""Tests of the page. It is a package, so that what its tests share ends with the last of them."""
