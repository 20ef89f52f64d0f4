"""Campaigns over HTTP, with the methods of cg.Campaign."""
