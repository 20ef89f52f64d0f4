"""Teams: campaigns in a database, the service over HTTP with its live page, and its client."""
