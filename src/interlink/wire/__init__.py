"""What crosses HTTP between our parts, in the existing dialect and in our own."""
