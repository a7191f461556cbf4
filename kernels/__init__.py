"""The arithmetic on arrays, CPU and CUDA; a family is imported when an op first needs it."""
