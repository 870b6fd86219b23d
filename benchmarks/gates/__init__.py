"""How often gates cry wolf over unchanged code, and how often they see code that became slower."""
