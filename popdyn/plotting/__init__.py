"""Pictures of results: a module a figure, a function a panel; nothing is computed here."""
