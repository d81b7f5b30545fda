"""What the functions talk to. Nothing here decides anything, and importing it opens no connection and reads no setting.

Clients, clocks and sleeps are handed in, so that tests speak the real protocols at any time of day.
"""
