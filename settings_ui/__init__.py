"""The settings pages, one view module a page."""
