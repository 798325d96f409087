"""Programs that tests run on real ranks, and the small runner that forks those ranks."""
