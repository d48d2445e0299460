"""Goals in a browser: pages that read, forms that call the same functions as the commands. Nothing is run from here."""
