"""One module for each command of a remote server, with the command's name."""
