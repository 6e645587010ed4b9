"""The bundled dataset: eight business domains as MCP servers over SQLite, and the seeded generator of their tasks."""
