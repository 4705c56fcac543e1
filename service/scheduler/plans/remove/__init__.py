"""Scale-in: which of the selected pods to delete, and in what order."""
