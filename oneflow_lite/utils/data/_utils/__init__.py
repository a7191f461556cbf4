"""The parts of the DataLoader: collation, fetching, the workers and their messages."""

from oneflow_lite.utils.data._utils import collate, fetch, worker
from oneflow_lite.utils.data._utils.errors import ExceptionWrapper
from oneflow_lite.utils.data._utils.worker import MP_STATUS_CHECK_INTERVAL

__all__ = ["MP_STATUS_CHECK_INTERVAL", "ExceptionWrapper", "collate", "fetch", "worker"]
