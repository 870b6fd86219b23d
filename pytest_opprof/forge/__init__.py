"""Talk to GitHub and GitLab: comment on pull requests, and judge the runs that forks upload."""
