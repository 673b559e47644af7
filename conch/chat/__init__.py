"""The pages and fragments of the chat."""
