"""Writes operators of a plan as SELECTs of DataFusion, each over those of its inputs."""
