"""SQL text in, typed tree out; knows no partition."""
