"""What Conch says: facts in, sentences out. Pure; imports routing's core and the standard library only."""
