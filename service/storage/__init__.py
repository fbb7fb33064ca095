"""The database and the artifact stores."""
