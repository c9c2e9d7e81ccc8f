"""The node: its object, what keeps it said, and what is believed of the site."""
