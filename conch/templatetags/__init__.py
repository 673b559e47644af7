"""The tags of Conch's templates."""
