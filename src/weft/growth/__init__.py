"""A trained model gets further tasks or more data, or loses a task, without harm to the tasks that it has."""
