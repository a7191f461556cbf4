"""The functions that users call: a family is imported when one of its names is first asked for."""
