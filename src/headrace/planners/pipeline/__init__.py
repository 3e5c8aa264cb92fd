"""Deploy a pipeline: the number of copies of each filter, their hosts, and the flows between them."""
