"""What evaluating a transform needs: source arrays, hashes, probe values, DataFusion's errors."""
