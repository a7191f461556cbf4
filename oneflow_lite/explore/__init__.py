"""The engine in a browser: what ran, recorded as one document, and a page that draws it.

`document.py` describes the document. `html.py` puts it and the page into one file.
"""
