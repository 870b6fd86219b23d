"""What processes that died left behind: which test ran, what each thread was in, the recording itself."""
