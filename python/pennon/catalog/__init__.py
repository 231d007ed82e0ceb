"""What SQL names mean: namespaces, tables, DDL."""
