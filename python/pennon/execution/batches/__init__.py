"""Streams of Arrow batches: made concurrently, merged, and measured."""
