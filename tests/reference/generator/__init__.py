"""What makes the reference results, by kind of fixture."""
