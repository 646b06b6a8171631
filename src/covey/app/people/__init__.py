"""The verbs of people: mail, questions, comments, devices, proposals."""
