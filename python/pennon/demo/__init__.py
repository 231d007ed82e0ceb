"""The main job on real data, shown step by step: the 2013 flights out of New York."""
