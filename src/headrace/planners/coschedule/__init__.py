"""Jobs, links and disks planned together: where each job runs, how its files travel, and when."""
