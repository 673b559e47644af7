"""What runs without a page: agents that start chats, background tasks, routines (R24, R25)."""
