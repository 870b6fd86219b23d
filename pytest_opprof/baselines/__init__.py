"""Earlier runs: where they are stored, and which of them a session is compared with."""
