"""Texts of times, calendars beyond DataFusion's, and time zones."""
