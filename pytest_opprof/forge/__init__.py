"""The one door to GitHub and GitLab: comments on pull requests, and what comes in from them."""
