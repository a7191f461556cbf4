"""gym with the results of gymnasium: five of a step, two of a reset."""

from gym import Env as Env, spaces as spaces, wrappers as wrappers


def make(name, **options):
    return Env(name, new=True)
