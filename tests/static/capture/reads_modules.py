"""Functions that read tensors, modules and hooks, each with a change of what they read."""

import oneflow_lite as flow
from oneflow_lite import nn
from tests.static.capture.outside_reads import Net, Plain, setter


def dtype(patch):
    obj = Plain(dtype=flow.float32)
    return lambda x: x.to(obj.dtype), setter(obj, "dtype", flow.float64)


def tensor_replaced(patch):
    obj = Plain(w=flow.ones(2))
    return lambda x: x * obj.w, setter(obj, "w", flow.ones(2))


def attribute_of_a_tensor(patch):
    w = flow.ones(2)
    w.factor = 2.0
    return lambda x: x * w.factor, setter(w, "factor", 3.0)


def training_flag(patch):
    net = Net()
    return lambda x: net(x), net.eval


def training_flag_of_a_submodule(patch):
    net = Net()
    return net, net.drop.eval


def attribute_of_a_module(patch):
    net = Net()
    return net, setter(net, "scale", 2.0)


def attribute_of_a_layer(patch):
    net = Net()
    return net, setter(net.drop, "p", 0.5)


def parameter_replaced(patch):
    net = Net()
    return net, lambda: setattr(net.linear, "weight", nn.Parameter(flow.ones(2, 2)))


def parameter_dropped(patch):
    net = Net()
    return net, setter(net.linear, "bias", None)


def submodule_replaced(patch):
    net = Net()
    return net, lambda: setattr(net, "linear", nn.Linear(2, 2))


def forward_of_one_layer_replaced(patch):
    net = Net()
    return net, setter(net.linear, "forward", lambda x: x)


def forward_of_a_layer_class_replaced(patch):
    net = Net()
    return net, lambda: patch(nn.Linear, "forward", lambda self, x: x)


def hook_added(patch):
    net = Net()
    return net, lambda: net.linear.register_forward_hook(lambda m, a, y: y * 2)


def hook_removed(patch):
    net = Net()
    handle = net.register_forward_pre_hook(lambda m, a: None)
    return net, handle.remove


def what_a_hook_reads(patch):
    net = Net()
    ks = [2.0]
    net.register_forward_hook(lambda m, a, y: y * ks[0])
    return net, lambda: ks.__setitem__(0, 3.0)


def module_list_grown(patch):
    layers = nn.ModuleList([nn.Linear(2, 2)])

    def f(x):
        for layer in layers:
            x = layer(x)
        return x

    return f, lambda: layers.append(nn.Linear(2, 2))


def method_of_tensors_replaced(patch):
    return lambda x: x.relu(), lambda: patch(flow.Tensor, "relu", lambda x: x)


def call_of_every_module_replaced(patch):
    net = Net()
    return net, lambda: patch(nn.Module, "__call__", lambda self, x: x)
