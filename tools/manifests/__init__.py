"""The page `docs/manifests.md`: what becomes of each field that Kubernetes has."""
