"""The names of PyTorch's that this library has for the sake of other people's code: one table.

`NAMES[module]` holds lines like those of `ops/homes.py`, `"home": "name other=its_name"`. The home
says which of three kinds a name is of:

- real: a home in the package, or of Python's own after a colon; the name does its work;
- inert: `compatibility.inert`, whose members change nothing, and say so;
- refused: the home begins with `refused:`, and a hint follows. The name can be imported,
  annotated with and asked about; it raises when it is called.

A key that is no module of ours becomes one when it is asked for. `exposure.py` looks here last, so
nothing of this is imported before somebody asks for a name that is nowhere else. A name that is not
here, either, raises AttributeError.
"""

from __future__ import annotations

from oneflow_lite.ops.homes import Homes

_TYPED = """
    BFloat16Tensor BoolTensor ByteTensor CharTensor ComplexDoubleTensor ComplexFloatTensor
    DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor
"""
# Functions of lists of tensors: `torch._foreach_add`, `torch._foreach_add_` ...
_IN_PLACE_TOO = """
    abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min cos cosh div erf erfc exp
    expm1 floor frac lerp lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal
    round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc
"""
FOREACH = " ".join(
    [f"{name} {name}_" for name in _IN_PLACE_TOO.split()] + ["clone copy_ max mm norm powsum zero_"]
)
_INERT = "compatibility.inert"
_COMPILE = "refused: flow.compile and flow.static capture programs"
_EXPORT = "refused: flow.onnx.export and flow.static.save write programs"
_QUANTIZED = "refused: there are no quantized dtypes"
_NESTED = "refused: pad the tensors, as nn.utils.rnn.pad_sequence does"
_SPARSE = "refused: use flow.sparse_coo_tensor"
_SHARDED = "refused: use nn.parallel.DistributedDataParallel and ZeroRedundancyOptimizer"
_GRID = "refused: flow.placement(type, ranks=[[0, 1], [2, 3]]) is a grid of ranks"
_GLOBAL = "refused: tensor.to_global(placement, sbp) makes a tensor of several ranks"
_RANKS = "refused: MPI knows who is there; start the processes with mpiexec"
_RPC = "refused: use send and recv, or broadcast_object_list"
_PIPES = "refused: use IterableDataset and DataLoader"
_BUILD = "refused: write kernels in Python, with register_op, or as CuPy's RawKernel"
_FLEX = "refused: pass a mask to nn.functional.scaled_dot_product_attention"
_SCRIPT = "refused: there is no TorchScript; modules run as they are"
_MODES = "refused: push an interpreter of your own, with flow.push_interpreter"
_SYMBOLIC = "refused: sizes are numbers; flow.static.data takes unknown sizes"
_FP8 = "refused: use flow.bfloat16 or flow.float16"

# The rest of a module that stands for devices which the library does not use.
_NO_DEVICE = """
    current_device=none device=context device_count=zero empty_cache=none get_device_name=none
    get_rng_state=none get_rng_state_all=none is_available=no set_rng_state=none
    set_rng_state_all=none
    is_bf16_supported=no is_current_stream_capturing=no manual_seed=none manual_seed_all=none
    max_memory_allocated=zero memory_allocated=zero memory_reserved=zero
    reset_peak_memory_stats=none set_device=none synchronize=none
"""

NAMES: Homes = {
    "": {
        "*": "functional=functions functions functors futures grad_funcs kernels",
        "compatibility.*": "accelerator amp backends hub jit library multiprocessing types version",
        "compatibility.amp": """
            GradScaler autocast clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype
            get_autocast_gpu_dtype is_autocast_cpu_enabled is_autocast_enabled
        """,
        "compatibility.cuda": "Event OutOfMemoryError=DeviceError Stream",
        "compatibility.foreach": " ".join(f"_foreach_{name}" for name in FOREACH.split()),
        "compatibility.jit": "ScriptModule",
        "compatibility.settings": """
            are_deterministic_algorithms_enabled get_deterministic_debug_mode
            get_float32_matmul_precision get_num_interop_threads get_num_threads
            is_deterministic_algorithms_warn_only_enabled is_warn_always_enabled
            set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
            set_flush_denormal set_num_interop_threads set_num_threads set_warn_always
            use_deterministic_algorithms
        """,
        "compatibility.helpers": """
            _assert _check=check _check_index=check _check_is_size=check_size _check_type=check_type
            _check_value=check_value get_device_module
        """,
        "compatibility.tensors": f"""
            {_TYPED} {_TYPED.replace("Tensor", "Storage")} Storage TypedStorage UntypedStorage
            addmv_ bfloat16 detach detach_ embedding_bag is_storage typename
        """,
        "files.*": "serialization",
        "tensors.*": "storage _tensor=tensor _tensor_str=tensor_repr",
        _INERT: """
            is_autocast_cache_enabled=no is_vulkan_available=no set_autocast_cache_enabled=none
        """,
        _FP8: """
            float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu
            float4_e2m1fn_x2 _scaled_mm _grouped_mm
        """,
        "refused: use flow.complex64": "complex32",
        _QUANTIZED: """
            bits16 bits1x8 bits2x4 bits4x2 bits8 fake_quantize_per_channel_affine
            fake_quantize_per_tensor_affine per_channel_affine per_channel_affine_float_qparams
            per_channel_symmetric per_tensor_affine per_tensor_symmetric qint32 qint8 qscheme
            quantize_per_channel quantize_per_tensor quint2x4 quint4x2 quint8 uint1 uint2 uint3
            uint4 uint5 uint6 uint7 int1 int2 int3 int4 int5 int6 int7
        """,
        _NESTED: "jagged",
        _SPARSE: """
            sparse_bsc sparse_bsc_tensor sparse_bsr sparse_bsr_tensor sparse_csc sparse_csc_tensor
            sparse_csr sparse_csr_tensor
        """,
        _SCRIPT: """
            CompilationUnit Future=ScriptFuture PyTorchFileReader PyTorchFileWriter ScriptFunction
            ScriptObject TensorType FloatType DeviceObjType StreamObjType
        """,
        _SYMBOLIC: """
            SymBool SymFloat SymInt sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum
        """,
        "refused: use flow.static.nn": "while_loop",
        "refused: the ops' schemas stand in the registry": "Tag DispatchKey",
    },
    "__config__": {"compatibility.helpers": "parallel_info show"},
    "_C": {
        "arrays.device": "device=Device",
        "arrays.dtype": "dtype",
        "arrays.size": "Size",
        "functors.random": "Generator",
        "tensors.tensor": "TensorBase=Tensor _TensorBase=Tensor",
        "compatibility.cuda": "_cuda_getDeviceCount=device_count",
        "compatibility.helpers": "_TensorMeta _disabled_torch_function_impl _show_config=show",
        _INERT: """
            DispatchKeySet=first DisableTorchFunction=context DisableTorchFunctionSubclass=context
            _ExcludeDispatchKeyGuard=context _are_functorch_transforms_active=no
            _get_tracing_state=none _is_torch_function_mode_enabled=no _is_tracing=no
            _jit_can_fuse_on_cpu=no _jit_can_fuse_on_gpu=no _jit_clear_class_registry=none
            _jit_override_can_fuse_on_cpu=none _jit_override_can_fuse_on_gpu=none
            _jit_set_nvfuser_enabled=none _jit_set_nvfuser_guard_mode=none
            _jit_set_profiling_executor=no _jit_set_profiling_mode=no
            _jit_set_texpr_fuser_enabled=none _log_api_usage_once=none
            _set_math_sdp_allow_fp16_bf16_reduction=none
        """,
        _SCRIPT: "FunctionSchema Future=ScriptFuture Graph Node ScriptMethod ScriptObject Value",
        "refused: the ops' schemas stand in the registry": "DispatchKey Tag",
    },
    "_C._functorch": {
        _INERT: "is_batchedtensor=no is_gradtrackingtensor=no is_legacy_batchedtensor=no",
        "refused: flow.func.vmap adds and takes away dimensions": """
            _add_batch_dim _remove_batch_dim get_unwrapped
        """,
    },
    "_C._nn": {"compatibility.helpers": "_parse_to"},
    "_C._onnx": {"refused: flow.onnx.export writes files": "OperatorExportTypes TrainingMode"},
    "_C._distributed_c10d": {_SHARDED: "Reducer"},
    "_C._distributed_rpc": {_INERT: "_is_current_rpc_agent_set=no", _RPC: "PyRRef"},
    "_custom_ops": {"refused: use library.custom_op": "custom_op get_ctx impl impl_abstract"},
    "_decomp": {_COMPILE: "core_aten_decompositions get_decompositions register_decomposition"},
    "_dispatch.python": {_INERT: "enable_python_dispatcher=context"},
    "_dynamo": {
        _INERT: """
            allow_in_graph=same assume_constant_result=same disable=same disallow_in_graph=same
            graph_break=none is_compiling=no mark_dynamic=none mark_static=none
            mark_static_address=none maybe_mark_dynamic=none reset=none
        """,
        "compatibility.backends": "config=settings",
        "compiler.face": "optimize=compile",
        _COMPILE: "OptimizedModule explain export",
    },
    "_dynamo.backends.common": {_COMPILE: "aot_autograd"},
    "_dynamo.eval_frame": {_COMPILE: "OptimizedModule"},
    "_dynamo.exc": {_COMPILE: "InternalTorchDynamoError TorchDynamoException Unsupported"},
    "_dynamo.utils": {
        _INERT: "disable_cache_limit=context is_compile_supported=no",
        _COMPILE: "deepcopy_to_fake_tensor",
    },
    "_dynamo._trace_wrapped_higher_order_op": {_INERT: "TransformGetItemToIndex=context"},
    "_functorch.partitioners": {_COMPILE: "_is_primal _is_tangent default_partition"},
    "_functorch.vmap": {
        "compatibility.pytree": "tree_flatten tree_unflatten",
        "tensors.tensor": "Tensor",
        "refused: flow.vmap is an interpreter": """
            _add_batch_dim _broadcast_to_and_flatten _create_batched_inputs _get_name
            _maybe_remove_batch_dim _process_batched_inputs _unwrap_batched
        """,
    },
    "_guards": {_COMPILE: "TracingContext active_fake_mode detect_fake_mode"},
    "_higher_order_ops.associative_scan": {
        "refused: use cumsum, cumprod or a loop": "associative_scan"
    },
    "_inductor": {
        _INERT: "cudagraph_mark_step_begin=none",
        "compatibility.backends": "config=settings",
        _COMPILE: "compile list_mode_options",
    },
    "_jit_internal": {
        _INERT: "_copy_to_script_wrapper=same export=same ignore=same is_scripting=no unused=same",
        "compatibility.helpers": "Final boolean_dispatch boolean_dispatched",
    },
    "_ops": {
        "compatibility.library": "ops",
        _COMPILE: "HigherOrderOperator OpOverload OpOverloadPacket",
    },
    "_subclasses": {_COMPILE: "FakeTensor FakeTensorMode"},
    "_subclasses.fake_tensor": {
        _INERT: "is_fake=no unset_fake_temporarily=context",
        _COMPILE: "FakeTensor FakeTensorMode",
    },
    "_subclasses.functional_tensor": {
        _INERT: "mb_unwrap_functional_tensor=first",
        _COMPILE: "FunctionalTensor",
    },
    "_tensor_str": {
        "tensors.tensor_repr": "printoptions",
        "refused: use str, and flow.set_printoptions": "PRINT_OPTS _tensor_str",
    },
    "_utils": {
        "compatibility.helpers": """
            _element_size _flatten_dense_tensors _get_available_device_type _get_device_index
            _get_device_module=get_device_module _take_tensors _unflatten_dense_tensors
        """,
        _INERT: "is_compiling=no",
        "refused: flow.load reads files": "_rebuild_parameter _rebuild_tensor_v2",
    },
    "_utils_internal": {_INERT: "resolve_library_path=first"},
    "amp": {"compatibility.*": "autocast_mode=amp grad_scaler=amp"},
    "amp.grad_scaler": {"compatibility.helpers": "OptState _refresh_per_optimizer_state"},
    "ao.nn.quantized": {_QUANTIZED: "BatchNorm2d Conv2d FloatFunctional Linear"},
    "ao.quantization": {
        _QUANTIZED: """
            DeQuantStub FakeQuantizeBase MinMaxObserver ObserverBase QConfig QConfigMapping
            QuantStub convert default_observer
            default_per_channel_weight_observer default_weight_observer fuse_modules
            fuse_modules_qat get_default_qat_qconfig get_default_qconfig prepare prepare_qat
            quantize_dynamic
        """
    },
    "autograd": {
        "autograd.engine.*": "anomaly_mode=anomaly",
        "compatibility.*": "profiler=autograd_profiler variable=tensors",
        "compatibility.tensors": "Variable",
        "tensors.*": "grad_mode=mode",
        _INERT: "_profiler_enabled=no",
    },
    "autograd.profiler": {"refused: flow.profiler.profile() has rows and totals": "EventList"},
    "compiler": {
        _INERT: """
            allow_in_graph=same assume_constant_result=same cudagraph_mark_step_begin=none
            disable=same is_compiling=no is_dynamo_compiling=no is_exporting=no reset=none
            set_stance=context skip_all_guards_unsafe=same substitute_in_graph=same
        """,
        "compatibility.backends": "config=settings",
        "compiler.face": "compile",
        _COMPILE: "list_backends load_compiled_function",
    },
    "cpu": {
        _INERT: """
            current_stream=none empty_cache=none manual_seed=none stream=context synchronize=none
        """,
        "compatibility.helpers": "current_device=cpu_name device_count=one is_available=yes",
    },
    "cuda": {
        "compatibility.*": "amp=cuda_amp memory=cuda random=cuda streams=cuda",
        "compatibility.cuda": """
            CudaError Event OutOfMemoryError Stream StreamContext=stream _initialized=is_initialized
            current_stream default_stream device device_of empty_cache get_arch_list
            get_device_capability get_device_name get_device_properties get_rng_state
            get_rng_state_all has_half init initial_seed ipc_collect is_bf16_supported
            is_initialized manual_seed manual_seed_all max_memory_allocated max_memory_cached
            max_memory_reserved mem_get_info memory_allocated memory_cached memory_reserved
            memory_stats memory_summary reset_accumulated_memory_stats reset_max_memory_allocated
            reset_max_memory_cached reset_peak_memory_stats seed seed_all set_device set_rng_state
            set_rng_state_all set_stream stream
        """,
        "compatibility.cuda_tensors": _TYPED,
        _INERT: "is_current_stream_capturing=no",
        "refused: flow.compile replays a step": "CUDAGraph graph make_graphed_callables",
        "refused: use CuPy's RawKernel and runtime": """
            caching_allocator_alloc caching_allocator_delete cudart current_blas_handle
        """,
    },
    "cuda.amp": {"compatibility.*": "autocast_mode=amp grad_scaler=amp"},
    "cuda.amp.grad_scaler": {"compatibility.helpers": "OptState"},
    "cuda.nvtx": {_INERT: "mark=none range=context range_pop=none range_push=none"},
    "cuda.profiler": {_INERT: "profile=context start=none stop=none"},
    "distributed": {
        "distributed.process_group": "ProcessGroup",
        _GRID: "DeviceMesh init_device_mesh",
        _RANKS: "FileStore HashStore PrefixStore Store TCPStore rendezvous",
        "refused: use new_group or new_subgroups": "split_group",
    },
    "distributed._composable.fsdp": {_SHARDED: "FSDPModule MixedPrecisionPolicy fully_shard"},
    "distributed._functional_collectives": {
        _RPC.replace("send and recv, or broadcast_object_list", "the functions of distributed"): """
            AsyncCollectiveTensor all_gather_tensor all_reduce all_to_all_single
            all_to_all_single_autograd permute_tensor
            reduce_scatter_tensor wait_tensor
        """
    },
    "distributed._tensor": {
        _INERT: "Replicate=record Shard=record",
        _GLOBAL: "DTensor DeviceMesh Placement",
    },
    "distributed._tensor.experimental": {_INERT: "implicit_replication=context"},
    "distributed.algorithms.ddp_comm_hooks.post_localSGD_hook": {_SHARDED: "PostLocalSGDState"},
    "distributed.algorithms.ddp_comm_hooks.powerSGD_hook": {
        _SHARDED: "PowerSGDState batched_powerSGD_hook powerSGD_hook"
    },
    "distributed.algorithms._checkpoint.checkpoint_wrapper": {
        "refused: call utils.checkpoint.checkpoint in forward": """
            CheckpointImpl CheckpointWrapper apply_activation_checkpointing checkpoint_wrapper
            offload_wrapper
        """
    },
    "distributed.algorithms.model_averaging.averagers": {
        _SHARDED: "ModelAverager PeriodicModelAverager"
    },
    "distributed.autograd": {
        _INERT: "is_available=no",
        _RPC: "DistAutogradContext backward context get_gradients",
    },
    "distributed.checkpoint": {
        "refused: use distributed.checkpoint.save and load": """
            DefaultLoadPlanner DefaultSavePlanner HuggingFaceStorageReader
            HuggingFaceStorageWriter async_save load_state_dict save_state_dict
        """
    },
    "distributed.checkpoint.hf_storage": {
        _SHARDED: "HuggingFaceStorageReader HuggingFaceStorageWriter"
    },
    "distributed.checkpoint.optimizer": {_SHARDED: "load_sharded_optimizer_state_dict"},
    "distributed.checkpoint.state_dict_loader": {_SHARDED: "_load_state_dict"},
    "distributed.checkpoint.state_dict": {
        "refused: use state_dict() and distributed.checkpoint.save": """
            StateDictOptions get_model_state_dict get_optimizer_state_dict get_state_dict
            set_model_state_dict set_optimizer_state_dict set_state_dict
        """
    },
    "distributed.checkpoint.default_planner": {_SHARDED: "DefaultLoadPlanner DefaultSavePlanner"},
    "distributed.checkpoint.format_utils": {
        "refused: use distributed.checkpoint.load": "_EmptyStateDictLoadPlanner _load_state_dict"
    },
    "distributed.constants": {"compatibility.helpers": "default_pg_timeout"},
    "distributed.device_mesh": {_GRID: "DeviceMesh init_device_mesh"},
    "distributed.distributed_c10d": {
        "distributed": """
            ProcessGroup ReduceOp get_rank get_world_size
            is_initialized
        """,
        "compatibility.helpers": "_get_default_group default_pg_timeout",
        _RANKS: "Backend PrefixStore Store _new_process_group_helper _world rendezvous",
    },
    "distributed.elastic.multiprocessing.errors": {
        _INERT: "record=same",
        _RANKS: "ChildFailedError",
    },
    "distributed.fsdp": {
        _SHARDED: """
            BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule FullOptimStateDictConfig
            FullStateDictConfig FullyShardedDataParallel LocalStateDictConfig MixedPrecision
            MixedPrecisionPolicy OffloadPolicy OptimStateKeyType ShardedOptimStateDictConfig
            ShardedStateDictConfig ShardingStrategy StateDictType fully_shard
            register_fsdp_forward_method
        """
    },
    "distributed.fsdp.api": {
        _SHARDED: """
            FullOptimStateDictConfig ShardedOptimStateDictConfig ShardedStateDictConfig
            StateDictType
        """
    },
    "distributed.fsdp.fully_sharded_data_parallel": {
        _SHARDED: """
            CPUOffload FullOptimStateDictConfig FullStateDictConfig FullyShardedDataParallel
            MixedPrecision ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy
            StateDictType
        """
    },
    "distributed.fsdp.sharded_grad_scaler": {_SHARDED: "ShardedGradScaler"},
    "distributed.fsdp.wrap": {
        _SHARDED: """
            ModuleWrapPolicy _or_policy enable_wrap lambda_auto_wrap_policy
            size_based_auto_wrap_policy transformer_auto_wrap_policy wrap
        """
    },
    "distributed.launcher.api": {_RANKS: "LaunchConfig elastic_launch"},
    "distributed.optim": {_SHARDED: "DistributedOptimizer PostLocalSGDOptimizer"},
    "distributed.pipelining": {_SHARDED: "PipelineStage ScheduleGPipe SplitPoint pipeline"},
    "distributed.rpc": {
        _INERT: "is_available=no",
        _RPC: """
            BackendType RRef RpcBackendOptions TensorPipeRpcBackendOptions get_worker_info
            init_rpc remote rpc_async rpc_sync shutdown
        """,
    },
    "distributed.rpc.api": {
        _INERT: "_require_initialized=same",
        _RPC: "UNSET_RPC_TIMEOUT _all_gather _barrier",
    },
    "distributed.run": {_RANKS: "get_args_parser main run"},
    "distributed.tensor": {
        _INERT: "Partial=record Replicate=record Shard=record",
        _GLOBAL: "DTensor DeviceMesh Placement distribute_module distribute_tensor",
    },
    "distributed.tensor._utils": {_GLOBAL: "compute_local_shape_and_global_offset"},
    "distributed.tensor.experimental": {
        _INERT: "implicit_replication=context",
        _GLOBAL: "context_parallel local_map",
    },
    "distributed.tensor.parallel": {
        _INERT: """
            ColwiseParallel=record ParallelStyle=record PrepareModuleInput=record
            PrepareModuleInputOutput=record PrepareModuleOutput=record RowwiseParallel=record
            SequenceParallel=record
        """,
        _GLOBAL: "parallelize_module",
    },
    "distributed.tensor.placement_types": {
        _INERT: "Partial=record Replicate=record Shard=record _StridedShard=record",
        _GLOBAL: "Placement",
    },
    "distributed.utils": {_SHARDED: "_sync_module_states"},
    "export": {_EXPORT: "Dim ExportedProgram export load register_dataclass save"},
    "export.decomp_utils": {_EXPORT: "CustomDecompTable"},
    "fx": {
        "compatibility.*": "graph=fx graph_module=fx node=fx proxy=fx",
        "compatibility.fx": """
            Graph GraphModule Node Proxy Tracer map_arg symbolic_trace wrap
        """,
        _COMPILE: "Interpreter Transformer replace_pattern",
    },
    "fx.experimental.proxy_tensor": {
        _INERT: "get_innermost_proxy_mode=none get_proxy_mode=none",
        _COMPILE: "make_fx",
    },
    "fx.experimental.symbolic_shapes": {
        "compatibility.helpers": """
            guard_or_false=truth guard_or_true=truth statically_known_true=truth
        """,
        _SYMBOLIC: "GuardOnDataDependentSymNode SymNode free_symbols",
    },
    "fx.passes.infra.pass_base": {_COMPILE: "PassBase PassResult"},
    "fx.passes.infra.pass_manager": {_COMPILE: "PassManager"},
    "fx.passes.shape_prop": {_COMPILE: "ShapeProp TensorMetadata"},
    "fx.subgraph_rewriter": {_COMPILE: "ReplacedPatterns replace_pattern"},
    "hub": {":tqdm.auto": "tqdm"},
    "jit": {
        "compatibility.*": "annotations=types",
        "compatibility.helpers": "_state=no_scripts",
        _SCRIPT: "_get_trace_graph",
    },
    "library": {"refused: use library.custom_op": "Library define impl triton_op wrap_triton"},
    "monitor": {"refused: use flow.profiler": "Aggregation Event Stat log_event"},
    "mps": {_INERT: _NO_DEVICE},
    "mtia": {_INERT: _NO_DEVICE},
    "nested": {
        _NESTED: "as_nested_tensor nested_tensor nested_tensor_from_jagged to_padded_tensor"
    },
    "nn": {"compatibility.parallel": "DataParallel", "nn.*": "parallel"},
    "nn.attention": {"compatibility.helpers": "SDPBackend", _INERT: "sdpa_kernel=context"},
    "nn.attention.flex_attention": {
        "compatibility.helpers": "_DEFAULT_SPARSE_BLOCK_SIZE",
        _FLEX: """
            AuxRequest BlockMask and_masks create_block_mask create_mask flex_attention or_masks
        """,
    },
    "nn.common_types": {
        "compatibility.types": """
            _ratio_2_t _ratio_3_t _ratio_any_t _size_1_t _size_2_t _size_2_opt_t _size_3_t
            _size_any_t
        """
    },
    "nn.functional": {
        "refused: call nn.functional.multi_head_attention_forward": """
            _canonical_mask _check_key_padding_mask _in_projection _in_projection_packed
            _mha_shape_check _none_or_dtype _verify_batch_size
        """,
        _FP8: "grouped_mm scaled_mm",
    },
    "nn.modules": {
        "compatibility.parallel": "DataParallel",
        "nn.*": "container=containers",
        "nn.module": "Module",
        "nn.modules.*": """
            batchnorm=normalization instancenorm=normalization module rnn=recurrent sparse=embedding
        """,
    },
    "nn.modules.activation": {"nn.modules.attention": "MultiheadAttention"},
    "nn.modules.linear": {"nn.modules.linear": "NonDynamicallyQuantizableLinear=Linear"},
    "nn.modules.module": {
        "nn.module": "_IncompatibleKeys",
        "compatibility.helpers": """
            _EXTRA_STATE_KEY_SUFFIX _addindent _global_parameter_registration_hooks
        """,
    },
    "nn.modules.transformer": {"compatibility.helpers": "_get_activation_fn"},
    "nn.parallel": {
        "compatibility.parallel": "DataParallel data_parallel",
    },
    "nn.parallel.scatter_gather": {
        "refused: DataParallel runs on one device": "gather scatter scatter_kwargs"
    },
    "nn.quantized": {_QUANTIZED: "BatchNorm2d FloatFunctional"},
    "nn.utils._named_member_accessor": {"refused: use func.functional_call": "swap_tensor"},
    "nn.utils._per_sample_grad": {
        "refused: use func.vmap of func.grad": "call_for_per_sample_grads"
    },
    "numa.binding": {"refused: the system places processes": "AffinityMode NumaOptions"},
    "onnx": {
        "refused: flow.onnx.export writes files; register_op gives an op of your own": """
            ONNXProgram OperatorExportTypes TrainingMode dynamo_export
        """,
        _INERT: "register_custom_op_symbolic=none unregister_custom_op_symbolic=none",
    },
    "onnx.symbolic_helper": {
        _INERT: "parse_args=decorator",
        _EXPORT: "_get_const _unimplemented cast_pytorch_to_onnx scalar_type_to_onnx",
    },
    "onnx.symbolic_opset11": {_EXPORT: "select squeeze unsqueeze"},
    "onnx.symbolic_opset9": {_EXPORT: "masked_fill softmax"},
    "onnx.utils": {_EXPORT: "_export _model_to_graph export register_custom_op_symbolic"},
    "optim": {
        "refused: gradients are dense; use Adam": "SparseAdam",
        "*": "_multi_tensor=optim",
        "compatibility.*": "_functional=optim",
        "optim.*": """
            _adafactor=muon _muon=muon adadelta=adagrad adamax=adam adamw=adam asgd=sgd nadam=adam
            radam=adam rmsprop=adagrad rprop=sgd
        """,
    },
    "optim.adagrad": {"compatibility.optim": "adadelta adagrad rmsprop"},
    "optim.adam": {"compatibility.optim": "adam adamax adamw nadam radam"},
    "optim.lr_scheduler": {
        "compatibility.optim": """
            EPOCH_DEPRECATION_WARNING _enable_get_lr_call _warn_get_lr_called_within_step
        """,
    },
    "optim.muon": {"compatibility.optim": "adafactor"},
    "optim.optimizer": {
        "compatibility.optim": """
            OptimizerPostHook OptimizerPreHook ParamsT StateDict _capturable_doc
            _default_to_fused_or_foreach _differentiable_doc _disable_dynamo_if_unsupported
            _dispatch_sqrt _foreach_doc _fused_doc _get_capturable_supported_devices
            _get_scalar_dtype _get_value _maximize_doc _params_doc _params_t _stack_if_compiling
            _to_scalar _use_grad_for_differentiable _view_as_real params_t
        """,
    },
    "optim.sgd": {"compatibility.optim": "asgd rprop sgd"},
    "overrides": {
        _INERT: """
            has_torch_function=no has_torch_function_unary=no has_torch_function_variadic=no
            enable_reentrant_dispatch=context
        """,
        "compatibility.helpers": "is_tensor_like",
        _MODES: """
            BaseTorchFunctionMode TorchFunctionMode get_ignored_functions get_overridable_functions
            _get_current_function_mode_stack get_default_nowrap_functions get_testing_overrides
            handle_torch_function is_tensor_method_or_property resolve_name
        """,
    },
    "package": {
        "refused: install the code, and use flow.save": """
            Importer PackageExporter PackageImporter sys_importer
        """
    },
    "profiler": {"compatibility.helpers": "kineto_available=yes"},
    "profiler.profiler": {"refused: use profiler.schedule": "_default_schedule_fn"},
    "quantization": {
        _QUANTIZED: """
            DeQuantStub FakeQuantizeBase MinMaxObserver ObserverBase QConfig QuantStub convert
            default_observer get_default_qconfig prepare prepare_qat quantize_dynamic
        """,
    },
    "quantization.fake_quantize": {_QUANTIZED: "FakeQuantize"},
    "quantization.observer": {
        _QUANTIZED: "HistogramObserver MinMaxObserver PerChannelMinMaxObserver"
    },
    "quantization.qconfig": {_QUANTIZED: "QConfig"},
    "return_types": {"compatibility.helpers": "cummax cummin max min sort topk"},
    "serialization": {
        "compatibility.helpers": "DEFAULT_PROTOCOL MAP_LOCATION",
        _INERT: "add_safe_globals=none clear_safe_globals=none safe_globals=context",
        "refused: flow.load reads tensors and plain containers": """
            get_safe_globals get_unsafe_globals_in_checkpoint location_tag normalize_storage_type
        """,
    },
    "sparse": {
        _INERT: "check_sparse_tensor_invariants=context",
        _SPARSE: "softmax spdiags",
    },
    "storage": {"compatibility.tensors": "TypedStorage UntypedStorage"},
    "torch_version": {"compatibility.helpers": "TorchVersion"},
    "types": {
        "compatibility.types": """
            Device Number Storage _TensorOrTensors _bool _device _dtype _float _int _size
        """
    },
    "utils": {
        "compatibility.*": "_pytree=pytree model_zoo=hub tensorboard",
        "tensors.*": "hooks",
        "compatibility.helpers": "swap_tensors",
    },
    "utils._contextlib": {":contextlib": "_DecoratorContextManager=ContextDecorator"},
    "utils._device": {_MODES: "DeviceContext"},
    "utils._foreach_utils": {
        "compatibility.helpers": "_group_tensors_by_device_and_dtype=grouped_tensors"
    },
    "utils._pytree": {_EXPORT: "treespec_dumps treespec_loads"},
    "utils._python_dispatch": {
        _INERT: """
            _disable_current_modes=context _get_current_dispatch_mode=none
            is_traceable_wrapper_subclass=no
        """,
        _MODES: "TorchDispatchMode _pop_mode_temporarily",
    },
    "utils._sympy.numbers": {_SYMBOLIC: "IntInfinity"},
    "utils._sympy.value_ranges": {_SYMBOLIC: "ValueRanges"},
    "utils.checkpoint": {"compatibility.helpers": "get_device_states set_device_states"},
    "utils.cpp_extension": {
        "compatibility.helpers": "CUDA_HOME",
        _BUILD: """
            BuildExtension CUDAExtension CppExtension _get_build_directory load load_inline
        """,
    },
    "utils.data": {
        _INERT: "functional_datapipe=decorator",  # of classes that are refused when they are made
        _PIPES: "IterDataPipe MapDataPipe",
    },
    "utils.data._utils.worker": {"compatibility.helpers": "_generate_state"},
    "utils.data.dataloader": {":typing": "_collate_fn_t=Callable _worker_init_fn_t=Callable"},
    "utils.data._utils.collate": {"compatibility.helpers": "np_str_obj_array_pattern"},
    "utils.data._utils.pin_memory": {_INERT: "pin_memory=first"},
    "utils.data.datapipes.iter": {_PIPES: "Batcher"},
    "utils.data.datapipes.iter.combinatorics": {_PIPES: "ShufflerIterDataPipe"},
    "utils.data.datapipes.utils.common": {_PIPES: "StreamWrapper"},
    "utils.data.graph": {_PIPES: "traverse_dps"},
    "utils.data.graph_settings": {_PIPES: "apply_random_seed apply_shuffle_settings"},
    "utils.dlpack": {"compatibility.helpers": "to_dlpack", "functors.creation": "from_dlpack"},
    "utils.flop_counter": {
        "refused: flow.profiler.profile() counts and times ops": "FlopCounterMode"
    },
    "utils.model_zoo": {":tqdm.auto": "tqdm"},
    "utils.module_tracker": {_MODES: "ModuleTracker"},
    "utils.weak": {
        "compatibility.helpers": "WeakIdKeyDictionary WeakTensorKeyDictionary=WeakIdKeyDictionary"
    },
    "xpu": {_INERT: _NO_DEVICE},
}
