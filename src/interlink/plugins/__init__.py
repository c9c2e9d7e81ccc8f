"""The plugins that come with interLink; they do not know each other."""
