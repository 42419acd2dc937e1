"""Makes the reference results, one module for each kind of fixture."""
