"""The monitoring service: a database behind HTTP, and exact changes to whoever subscribes."""
