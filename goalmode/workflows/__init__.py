"""The workflows that are shipped, as TOML files, and the reader of users' own."""
