"""The Lance dataset ``__manifest``: opened, its versions listed, its rows selected."""
