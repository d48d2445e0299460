"""What is stored of goals, as plain JSON values. Reads only: no row and no workspace is ever changed from here."""
