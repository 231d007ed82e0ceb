"""What all maintenance does with leaves: their files, their values, and how far it is."""
