"""The interLink server, whichever dialect it speaks."""
