"""Plans that the worker keeps between requests, and what it chooses for a query."""
