"""Pennon behind upstream's ``lance_namespace`` interface."""
