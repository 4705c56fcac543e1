"""One module for each command of a server, with the command's name."""
