"""The daily look at what AWS has charged."""
