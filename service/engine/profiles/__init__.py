"""The known plugins, and the profiles that select, order, and weight them."""
