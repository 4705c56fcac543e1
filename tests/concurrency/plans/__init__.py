"""Plans that race with placements: what callers do, over HTTP, and the judgement of what they leave."""
