"""The web application: lessons, runs, progress, pages.

It reaches ranks only through engine.executor.
"""
