"""The page of `headrace ui`: a server on this machine, thin over the functions that the command uses."""
