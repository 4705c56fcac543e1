"""What scheduling reads of Kubernetes' objects: frozen values, and what quantities and selectors mean."""
