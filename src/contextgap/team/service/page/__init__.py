"""The live page: what it shows of campaigns, and the files that it is made of."""
