"""What a commit may meet: changes of others, rebased or refused."""
