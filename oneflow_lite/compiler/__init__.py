"""`flow.compile`: calls are observed while they run, and their Programs replayed under guards.

A function is rewritten so that its reads, decisions and effects pass an observer (`rewrite`,
`observer`, `calls`, `lookup`). A recorder writes the ops down as a Program. Guards decide at each
call whether a recording fits (`match`, `same`, `outside`), and `compiled_node` is its gradient.
It imports `static/runtime`, `optim`, `nn` and the rooms below. `flow.compile`, `nn.Graph` and the
explorer use it. It is not called `compile`, because a package of that name would hide the function.
"""

from oneflow_lite.ops.exposure import expose as _expose

_expose(globals())
