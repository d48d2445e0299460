"""One model call: a request out, a reply with its explicit ending back."""
