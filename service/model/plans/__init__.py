"""Plans, rollouts, and the changes that repairs suggest."""
