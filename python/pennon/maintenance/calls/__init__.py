"""The procedures of CALL: names, parameters, result columns."""
