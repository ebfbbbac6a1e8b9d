"""One module per client: how that client is told to do each job, in the fastest way its documentation has."""
