"""DOUBLEs and FLOATs as Spark orders, rounds and cuts them."""
