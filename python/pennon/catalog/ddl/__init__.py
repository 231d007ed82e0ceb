"""CREATE, ALTER, REPLACE, RENAME and DROP of tables."""
