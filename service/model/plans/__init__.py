"""Plans, rollouts, and the changes that repairs consist of."""
