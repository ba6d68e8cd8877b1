"""What this package replaces in torch where torch has no hook, and the modules whose import it waits for."""
