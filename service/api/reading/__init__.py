"""What is read of the store without asking the scheduler."""
