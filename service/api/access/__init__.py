"""Who may use which route."""
