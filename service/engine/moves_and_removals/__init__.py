"""What placed pods gain and lose if some of them move to other nodes, or go."""
