"""Fixed plans in virtual time, fast enough to judge many candidates by."""
