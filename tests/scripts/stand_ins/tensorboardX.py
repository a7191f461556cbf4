"""Takes every call and does nothing."""

from nothing import Nothing

SummaryWriter = Visdom = summary = Nothing


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Nothing()
