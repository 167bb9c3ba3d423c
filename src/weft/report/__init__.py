"""What a run learnt, for people to look at: a page, a text, figures. Reads run folders, trains nothing."""
