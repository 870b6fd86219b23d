"""Yesterday's runs: where they are kept, and which of them a session is compared with."""
