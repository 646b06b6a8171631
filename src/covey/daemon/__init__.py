"""The daemon of one project: `python -m covey.daemon FOLDER`."""
