"""What people read: a result becomes a document of blocks once, and each format renders the blocks."""
