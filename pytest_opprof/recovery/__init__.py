"""What dead processes left behind: the test that ran, each thread's open ops, and the recording."""
