"""Read the migrations once, for the commands that are forked from the process that imports this."""

from service.storage.schema import head

head()
