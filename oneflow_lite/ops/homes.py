"""The home of each public name that no declaration tells, written by hand: here and nowhere else.

`"home": "name other=its_name"` reads as `from home import name, its_name as other`. A home stands
without `oneflow_lite.` in front; a colon marks a module of Python's own. In `package.*`, the names
are those of modules. `exposure.py` imports a home when one of its names is first asked for, and
`index.py` writes the stubs from the same lines.
"""

from __future__ import annotations

from oneflow_lite.ops import names

Homes = dict[str, dict[str, str]]

# By module ("" is the package itself): what users find there, and what `dir` lists.
MODULES: Homes = {
    "": {
        "*": """
            autograd distributed distributions errors fft func linalg masked mock_torch nn onnx
            optim profiler random signal sparse special static testing utils
        """,
        ":math": "e inf nan pi",
        "arrays.device": "device=Device get_default_device set_default_device",
        "arrays.dtype": """
            can_cast finfo get_default_dtype iinfo promote_types set_default_dtype
        """,
        "arrays.dtype_object": """
            bool=bool_ cdouble=complex128 cfloat=complex64 complex128 complex64 double=float64
            dtype float=float32 float16 float32 float64 half=float16 int=int32 int16 int32 int64
            int8 long=int64 short=int16 uint16 uint32 uint64 uint8
        """,
        "arrays.memory_format": """
            channels_last channels_last_3d contiguous_format memory_format preserve_format
        """,
        "arrays.size": "Size",
        "autograd.rules.gradient_rules": """
            AutoGradCaptureState OpExprGradFunction register_grad_func
        """,
        "distributions.*": "quasirandom",
        "compiler.face": "compile explain",
        "distributed.placement": "placement sbp",
        "explore": "explore",
        "extend": "register_op",
        "files.serialization": "load save",
        "func": "vmap",
        "functors.creation": """
            as_tensor asarray empty_strided from_dlpack from_file from_numpy frombuffer tensor
        """,
        "functors.inplace": "fill_ zero_",
        "functors.joining": "broadcast_shapes",
        "functors.random": """
            Generator default_generator get_rng_state initial_seed manual_seed seed set_rng_state
        """,
        "info": "info",
        "interpreter.stack": """
            AutogradInterpreter EagerInterpreter Interpreter current_interpreter push_interpreter
        """,
        "nn.summarize": "summary",
        "nn.utils.weight_norm": "norm_except_dim",
        "ops.registry": "register_functor register_kernel",
        "sparse": "sparse_coo sparse_coo_tensor spmm",
        "static.runtime.takeover": "use_jit",
        "tensors.mode": """
            enable_grad inference_mode is_grad_enabled is_inference_mode_enabled no_grad
            set_grad_enabled
        """,
        "tensors.tensor": "Tensor",
        "tensors.tensor_methods": """
            get_device is_conj=never is_inference is_neg=never is_nonzero is_same_size is_signed
            layout resize_as_ strided
        """,
        "tensors.tensor_repr": "get_printoptions printoptions set_printoptions",
    },
    "autograd": {
        "autograd.*": "forward_ad function functional graph",
        "autograd.engine.anomaly": """
            detect_anomaly is_anomaly_check_nan_enabled is_anomaly_enabled set_debug_mode
            set_detect_anomaly
        """,
        "autograd.engine.run": "backward grad",
        "autograd.function": "Function",
        "autograd.tools.gradcheck": "gradcheck gradgradcheck",
        "autograd.tools.step_log": "trace",
        "tensors.mode": "enable_grad inference_mode is_grad_enabled no_grad set_grad_enabled",
    },
    "distributed": {"nn.parallel.reducer": "GradBucket"},
    "distributed.checkpoint": {
        "files.sharded_files": "FileSystemReader FileSystemWriter load remove_old save saved"
    },
    "distributed.optim": {"optim.zero": "ZeroRedundancyOptimizer"},
    "nn": {"compiler.graph": "Graph", "nn.*": "grad"},
}

# By class: methods that stand above it. Tensor's old names are here, too: a fallback for absent
# names would make every look-up of an attribute slower.
CLASSES: Homes = {
    "FunctionNode": {
        "autograd.engine.node_access": """
            __call__=call __dir__=attribute_names _look_up=saved_attribute
        """,
    },
    "Module": {
        "compiler.face": "compile=compile_in_place",
        "distributed.global_tensor": "to_global=module_to_global",
        "interop.notebook": "_repr_html_=module_html",
    },
    "Optimizer": {
        "compatibility.optim": """
            _cuda_graph_capture_health_check _group_tensors_by_device_and_dtype _patch_step_function
        """,
        "static.lazy.minimize": "minimize",
    },
    "SparseTensor": {"interop.notebook": "_repr_html_=sparse_html"},
    "Tensor": {
        "compatibility.tensors": """
            _is_view _make_subclass=make_subclass as_subclass new pin_memory share_memory_ volatile
        """,
        "distributed.global_tensor": """
            global_to_global is_local local_to_global placement sbp to_global to_local
        """,
        "functors.inplace": "copy_ fill_ fill_diagonal_ zero_",
        "functors.methods": names.METHODS,
        "interop.array_protocols": """
            __array_function__=array_function __array_namespace__=array_namespace
            __array_ufunc__=array_ufunc
        """,
        "interop.notebook": "_repr_html_=tensor_html",
        "interop.storages": "storage storage_type untyped_storage",
        "sparse": "to_sparse",
        "tensors.tensor_methods": """
            __cuda_array_interface__ apply_ data_ptr dense_dim dim_order get_device is_conj=never
            is_cpu is_distributed=never is_inference is_ipu=no is_maia=no is_mkldnn=no
            is_mps=no is_mtia=no is_neg=never is_nested=no is_nonzero is_pinned is_quantized=no
            is_same_size is_set_to is_shared=never is_signed is_sparse=no is_sparse_csr=no
            is_vulkan=no is_xla=no is_xpu=no layout=of_layout map_ ndimension resize_ resize_as_
            set_ sparse_dim to_dense type=type_
        """,
    },
}
