"""A sheet of pictures of every page, to be looked at: `python -m tests.browser.pictures FOLDER [URL USER PASSWORD]`."""
