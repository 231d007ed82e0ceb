"""Calendars beyond DataFusion's, and time zones."""
