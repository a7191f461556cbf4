"""The names of PyTorch's that this library has for the sake of other people's code: one table.

A line of `TABLE` is a module of PyTorch's, then homes in angle brackets, each before the names that
it has; `name=other` is called other in its home. The home says which of three kinds a name is of:

- real: a file of the package, as `ops/homes.py` writes it; the name does its work;
- inert: `<inert>`, the file of that name here, whose members change nothing, and say so;
- refused: `<!hint>`, in words or by a key of `HINTS`. The name can be imported, annotated with and
  asked about; it raises when it is called.

A module that no file of ours has is made when it is asked for. `exposure.py` looks here last, so
nothing of this is imported before somebody asks for a name that is nowhere else. A name that is not
here, either, raises AttributeError.
"""

from __future__ import annotations

import re

from oneflow_lite.ops.homes import Homes

HINTS = {
    "build": "write kernels in Python, with register_op, or as CuPy's RawKernel",
    "compile": "flow.compile and flow.static capture programs",
    "export": "flow.onnx.export and flow.static.save write programs",
    "flex": "pass a mask to nn.functional.scaled_dot_product_attention",
    "fp8": "use flow.bfloat16 or flow.float16",
    "global": "tensor.to_global(placement, sbp) makes a tensor of several ranks",
    "grid": "flow.placement(type, ranks=[[0, 1], [2, 3]]) is a grid of ranks",
    "modes": "push an interpreter of your own, with flow.push_interpreter",
    "nested": "pad the tensors, as nn.utils.rnn.pad_sequence does",
    "pipes": "use IterableDataset and DataLoader",
    "quantized": "there are no quantized dtypes",
    "ranks": "MPI knows who is there; start the processes with mpiexec",
    "rpc": "use send and recv, or broadcast_object_list",
    "script": "there is no TorchScript; modules run as they are",
    "sharded": "use nn.parallel.DistributedDataParallel and ZeroRedundancyOptimizer",
    "sparse": "use flow.sparse_coo_tensor",
    "symbolic": "sizes are numbers; flow.static.data takes unknown sizes",
}
TABLE = """
torch._C._distributed_c10d: <!sharded> Reducer
torch._C._distributed_rpc: <inert> _is_current_rpc_agent_set=no <!rpc> PyRRef
torch._C._functorch: <inert> is_batchedtensor=no is_gradtrackingtensor=no
  is_legacy_batchedtensor=no <!flow.func.vmap adds and takes away dimensions> _add_batch_dim
  get_unwrapped _remove_batch_dim
torch._C._nn: <compatibility.helpers> _parse_to
torch._C._onnx: <!flow.onnx.export writes files> OperatorExportTypes TrainingMode
torch._C: <arrays.device> device=Device <arrays.dtype> dtype <arrays.size> Size <functors.random>
  Generator <tensors.tensor> TensorBase=Tensor _TensorBase=Tensor <interop.cuda>
  _cuda_getDeviceCount=device_count <compatibility.helpers> _disabled_torch_function_impl
  _show_config=show _TensorMeta <inert> _are_functorch_transforms_active=no
  DispatchKeySet=first
  _ExcludeDispatchKeyGuard=context _get_tracing_state=none _is_torch_function_mode_enabled=no
  _is_tracing=no _jit_can_fuse_on_cpu=no _jit_can_fuse_on_gpu=no _jit_clear_class_registry=none
  _jit_override_can_fuse_on_cpu=none _jit_override_can_fuse_on_gpu=none
  _jit_set_nvfuser_enabled=none _jit_set_nvfuser_guard_mode=none _jit_set_profiling_executor=no
  _jit_set_profiling_mode=no _jit_set_texpr_fuser_enabled=none _log_api_usage_once=none
  _set_math_sdp_allow_fp16_bf16_reduction=none <tensors.subclasses>
  DisableTorchFunction=DisableTorchFunctionSubclass DisableTorchFunctionSubclass
  <!script> FunctionSchema Future=ScriptFuture Graph
  Node ScriptMethod ScriptObject Value <!the ops' schemas stand in the registry> DispatchKey Tag
torch.__config__: <compatibility.helpers> show
torch._custom_ops: <!use library.custom_op> custom_op get_ctx impl impl_abstract
torch._decomp: <!compile> core_aten_decompositions get_decompositions register_decomposition
torch._dispatch.python: <inert> enable_python_dispatcher=context
torch._dynamo._trace_wrapped_higher_order_op: <inert> TransformGetItemToIndex=context
torch._dynamo.backends.common: <!compile> aot_autograd
torch._dynamo.eval_frame: <!compile> OptimizedModule
torch._dynamo.exc: <!compile> InternalTorchDynamoError TorchDynamoException Unsupported
torch._dynamo.utils: <inert> disable_cache_limit=context is_compile_supported=no <!compile>
  deepcopy_to_fake_tensor
torch._dynamo: <inert> allow_in_graph=same assume_constant_result=same disable=same
  disallow_in_graph=same graph_break=none is_compiling=no mark_dynamic=none mark_static=none
  mark_static_address=none maybe_mark_dynamic=none reset=none <compatibility.backends>
  config=settings <compiler.face> optimize=compile <!compile> explain export OptimizedModule
torch._functorch.partitioners: <!compile> default_partition _is_primal _is_tangent
torch._functorch.vmap: <compatibility.pytree> tree_flatten tree_unflatten <tensors.tensor> Tensor
  <!flow.vmap is an interpreter> _add_batch_dim _broadcast_to_and_flatten _create_batched_inputs
  _get_name _maybe_remove_batch_dim _process_batched_inputs _unwrap_batched
torch._guards: <!compile> active_fake_mode detect_fake_mode TracingContext
torch._higher_order_ops.associative_scan: <!use cumsum, cumprod or a loop> associative_scan
torch._inductor: <inert> cudagraph_mark_step_begin=none <compatibility.backends> config=settings
  <!compile> compile list_mode_options
torch._jit_internal: <inert> _copy_to_script_wrapper=same export=same ignore=same is_scripting=no
  unused=same <compatibility.helpers> Final
torch._ops: <compatibility.library> ops <!compile> HigherOrderOperator OpOverload OpOverloadPacket
torch._subclasses.fake_tensor: <inert> is_fake=no unset_fake_temporarily=context <!compile>
  FakeTensor FakeTensorMode
torch._subclasses.functional_tensor: <inert> mb_unwrap_functional_tensor=first <!compile>
  FunctionalTensor
torch._subclasses: <!compile> FakeTensor FakeTensorMode
torch._tensor_str: <tensors.tensor_repr> printoptions <!use str, and flow.set_printoptions>
  PRINT_OPTS _tensor_str
torch._utils: <compatibility.helpers> _element_size _flatten_dense_tensors
  _get_available_device_type _get_device_index _get_device_module=get_device_module
  _unflatten_dense_tensors <inert> is_compiling=no <!flow.load reads files> _rebuild_parameter
  _rebuild_tensor_v2
torch._utils_internal: <inert> resolve_library_path=first
torch.amp.grad_scaler: <compatibility.helpers> OptState _refresh_per_optimizer_state
torch.amp: <*> autocast_mode=amp grad_scaler=amp
torch.ao.nn.quantized: <!quantized> BatchNorm2d Conv2d FloatFunctional Linear
torch.ao.quantization: <!quantized> convert default_observer default_per_channel_weight_observer
  default_weight_observer DeQuantStub FakeQuantizeBase fuse_modules fuse_modules_qat
  get_default_qat_qconfig get_default_qconfig MinMaxObserver ObserverBase prepare prepare_qat
  QConfig QConfigMapping quantize_dynamic QuantStub
torch.autograd.profiler: <!flow.profiler.profile() has rows and totals> EventList
torch.autograd: <autograd.engine.*> anomaly_mode=anomaly <compatibility.*>
  profiler=autograd_profiler variable=tensors <compatibility.tensors> Variable <tensors.*>
  grad_mode=mode <inert> _profiler_enabled=no
torch.compiler: <inert> allow_in_graph=same assume_constant_result=same
  cudagraph_mark_step_begin=none disable=same is_compiling=no is_dynamo_compiling=no
  is_exporting=no reset=none set_stance=context skip_all_guards_unsafe=same
  substitute_in_graph=same <compatibility.backends> config=settings <compiler.face> compile
  <!compile> list_backends load_compiled_function
torch.cpu: <inert> current_stream=none empty_cache=none manual_seed=none stream=context
  synchronize=none <compatibility.helpers> current_device=cpu_name device_count=one
  is_available=yes
torch.cuda.amp.grad_scaler: <compatibility.helpers> OptState
torch.cuda.amp: <*> autocast_mode=amp grad_scaler=amp
torch.cuda.nvtx: <inert> mark=none range=context range_pop=none range_push=none
torch.cuda.profiler: <inert> profile=context start=none stop=none
torch.cuda: <compatibility.*> amp=cuda_amp <interop.*> memory=cuda random=cuda streams=cuda
  <interop.cuda> CudaError current_stream default_stream device device_of empty_cache Event
  get_arch_list get_device_capability get_device_name get_device_properties get_rng_state
  get_rng_state_all has_half init initial_seed _initialized=is_initialized ipc_collect
  is_bf16_supported is_initialized manual_seed manual_seed_all max_memory_allocated
  max_memory_cached max_memory_reserved mem_get_info memory_allocated memory_cached
  memory_reserved memory_stats memory_summary OutOfMemoryError reset_accumulated_memory_stats
  reset_max_memory_allocated reset_max_memory_cached reset_peak_memory_stats seed seed_all
  set_device set_rng_state set_rng_state_all set_stream Stream stream StreamContext=stream
  <compatibility.cuda_tensors> BFloat16Tensor BoolTensor ByteTensor CharTensor ComplexDoubleTensor
  ComplexFloatTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor <inert>
  is_current_stream_capturing=no <!flow.compile replays a step> CUDAGraph graph
  make_graphed_callables <!use CuPy's RawKernel and runtime> caching_allocator_alloc
  caching_allocator_delete cudart current_blas_handle
torch.distributed._composable.fsdp: <!sharded> FSDPModule fully_shard MixedPrecisionPolicy
torch.distributed._functional_collectives: <!use the functions of distributed> all_gather_tensor
  all_reduce all_to_all_single all_to_all_single_autograd AsyncCollectiveTensor permute_tensor
  reduce_scatter_tensor wait_tensor
torch.distributed._tensor.experimental: <inert> implicit_replication=context
torch.distributed._tensor: <inert> Replicate=record Shard=record <!global> DeviceMesh DTensor
  Placement
torch.distributed.algorithms._checkpoint.checkpoint_wrapper: <!call utils.checkpoint.checkpoint in
  forward> apply_activation_checkpointing checkpoint_wrapper CheckpointImpl CheckpointWrapper
  offload_wrapper
torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook: <!sharded> PostLocalSGDState
torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook: <!sharded> batched_powerSGD_hook
  powerSGD_hook PowerSGDState
torch.distributed.algorithms.model_averaging.averagers: <!sharded> ModelAverager
  PeriodicModelAverager
torch.distributed.autograd: <inert> is_available=no <!rpc> backward context DistAutogradContext
  get_gradients
torch.distributed.checkpoint.default_planner: <!sharded> DefaultLoadPlanner DefaultSavePlanner
torch.distributed.checkpoint.format_utils: <!use distributed.checkpoint.load>
  _EmptyStateDictLoadPlanner _load_state_dict
torch.distributed.checkpoint.hf_storage: <!sharded> HuggingFaceStorageReader
  HuggingFaceStorageWriter
torch.distributed.checkpoint.optimizer: <!sharded> load_sharded_optimizer_state_dict
torch.distributed.checkpoint.state_dict: <!use state_dict() and distributed.checkpoint.save>
  get_model_state_dict get_optimizer_state_dict get_state_dict set_model_state_dict
  set_optimizer_state_dict set_state_dict StateDictOptions
torch.distributed.checkpoint.state_dict_loader: <!sharded> _load_state_dict
torch.distributed.checkpoint: <!use distributed.checkpoint.save and load> async_save
  DefaultLoadPlanner DefaultSavePlanner HuggingFaceStorageReader HuggingFaceStorageWriter
  load_state_dict save_state_dict
torch.distributed.constants: <compatibility.helpers> default_pg_timeout
torch.distributed.device_mesh: <!grid> DeviceMesh init_device_mesh
torch.distributed.distributed_c10d: <distributed> get_rank get_world_size is_initialized
  ProcessGroup ReduceOp <compatibility.helpers> default_pg_timeout _get_default_group <!ranks>
  Backend _new_process_group_helper PrefixStore rendezvous Store _world
torch.distributed.elastic.multiprocessing.errors: <inert> record=same <!ranks> ChildFailedError
torch.distributed.fsdp.api: <!sharded> FullOptimStateDictConfig ShardedOptimStateDictConfig
  ShardedStateDictConfig StateDictType
torch.distributed.fsdp.fully_sharded_data_parallel: <!sharded> CPUOffload FullOptimStateDictConfig
  FullStateDictConfig FullyShardedDataParallel MixedPrecision ShardedOptimStateDictConfig
  ShardedStateDictConfig ShardingStrategy StateDictType
torch.distributed.fsdp.sharded_grad_scaler: <!sharded> ShardedGradScaler
torch.distributed.fsdp.wrap: <!sharded> enable_wrap lambda_auto_wrap_policy ModuleWrapPolicy
  _or_policy size_based_auto_wrap_policy transformer_auto_wrap_policy wrap
torch.distributed.fsdp: <!sharded> BackwardPrefetch CPUOffload CPUOffloadPolicy FSDPModule
  FullOptimStateDictConfig FullStateDictConfig fully_shard FullyShardedDataParallel
  LocalStateDictConfig MixedPrecision MixedPrecisionPolicy OffloadPolicy OptimStateKeyType
  register_fsdp_forward_method ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy
  StateDictType
torch.distributed.launcher.api: <!ranks> elastic_launch LaunchConfig
torch.distributed.optim: <!sharded> DistributedOptimizer PostLocalSGDOptimizer
torch.distributed.pipelining: <!sharded> pipeline PipelineStage ScheduleGPipe SplitPoint
torch.distributed.rpc.api: <inert> _require_initialized=same <!rpc> _all_gather _barrier
  UNSET_RPC_TIMEOUT
torch.distributed.rpc: <inert> is_available=no <!rpc> BackendType get_worker_info init_rpc remote
  rpc_async rpc_sync RpcBackendOptions RRef shutdown TensorPipeRpcBackendOptions
torch.distributed.run: <!ranks> get_args_parser main run
torch.distributed.tensor._utils: <!global> compute_local_shape_and_global_offset
torch.distributed.tensor.experimental: <inert> implicit_replication=context <!global>
  context_parallel local_map
torch.distributed.tensor.parallel: <inert> ColwiseParallel=record ParallelStyle=record
  PrepareModuleInput=record PrepareModuleInputOutput=record PrepareModuleOutput=record
  RowwiseParallel=record SequenceParallel=record <!global> parallelize_module
torch.distributed.tensor.placement_types: <inert> Partial=record Replicate=record Shard=record
  _StridedShard=record <!global> Placement
torch.distributed.tensor: <inert> Partial=record Replicate=record Shard=record <!global>
  DeviceMesh distribute_module distribute_tensor DTensor Placement
torch.distributed.utils: <!sharded> _sync_module_states
torch.distributed: <distributed.process_group> ProcessGroup <!grid> DeviceMesh init_device_mesh
  <!ranks> FileStore HashStore PrefixStore rendezvous Store TCPStore <!use new_group or
  new_subgroups> split_group
torch.export.decomp_utils: <!export> CustomDecompTable
torch.export: <!export> Dim export ExportedProgram load register_dataclass save
torch.fx.experimental.proxy_tensor: <inert> get_innermost_proxy_mode=none get_proxy_mode=none
  <!compile> make_fx
torch.fx.experimental.symbolic_shapes: <compatibility.helpers> guard_or_false=truth
  guard_or_true=truth statically_known_true=truth <!symbolic> free_symbols
  GuardOnDataDependentSymNode SymNode
torch.fx.passes.infra.pass_base: <!compile> PassBase PassResult
torch.fx.passes.infra.pass_manager: <!compile> PassManager
torch.fx.passes.shape_prop: <!compile> ShapeProp TensorMetadata
torch.fx.subgraph_rewriter: <!compile> replace_pattern ReplacedPatterns
torch.func: <!use func.functional_call> combine_state_for_ensemble FunctionalModule
  FunctionalModuleWithBuffers make_functional make_functional_with_buffers
torch.fx: <compatibility.*> graph=fx graph_module=fx node=fx proxy=fx <compatibility.fx> Graph
  GraphModule Interpreter map_arg Node Proxy symbolic_trace Tracer wrap <!compile> replace_pattern
  Transformer
torch.hub: <:tqdm.auto> tqdm
torch.jit: <compatibility.*> annotations=types <compatibility.helpers> _state=no_scripts <!script>
  _get_trace_graph
torch.library: <!use library.custom_op> define impl Library triton_op wrap_triton
torch.monitor: <!use flow.profiler> Aggregation Event log_event Stat
torch.mps: <inert> current_device=none device=context device_count=zero empty_cache=none
  get_device_name=none get_rng_state=none get_rng_state_all=none is_available=no
  is_bf16_supported=no is_current_stream_capturing=no manual_seed=none manual_seed_all=none
  max_memory_allocated=zero memory_allocated=zero memory_reserved=zero
  reset_peak_memory_stats=none set_device=none set_rng_state=none set_rng_state_all=none
  synchronize=none
torch.mtia: <inert> current_device=none device=context device_count=zero empty_cache=none
  get_device_name=none get_rng_state=none get_rng_state_all=none is_available=no
  is_bf16_supported=no is_current_stream_capturing=no manual_seed=none manual_seed_all=none
  max_memory_allocated=zero memory_allocated=zero memory_reserved=zero
  reset_peak_memory_stats=none set_device=none set_rng_state=none set_rng_state_all=none
  synchronize=none
torch.nested: <!nested> as_nested_tensor nested_tensor nested_tensor_from_jagged to_padded_tensor
torch.nn.attention.flex_attention: <compatibility.helpers> _DEFAULT_SPARSE_BLOCK_SIZE <!flex>
  and_masks AuxRequest BlockMask create_block_mask create_mask flex_attention or_masks
torch.nn.attention: <compatibility.helpers> SDPBackend <inert> sdpa_kernel=context
torch.nn.common_types: <compatibility.types> _ratio_2_t _ratio_3_t _ratio_any_t _size_1_t
  _size_2_opt_t _size_2_t _size_3_t _size_any_t
torch.nn.functional: <!call nn.functional.multi_head_attention_forward> _canonical_mask
  _check_key_padding_mask _in_projection _in_projection_packed _mha_shape_check _none_or_dtype
  _verify_batch_size <!fp8> grouped_mm scaled_mm
torch.nn.modules.activation: <nn.modules.attention> MultiheadAttention
torch.nn.modules.linear: <nn.modules.linear> NonDynamicallyQuantizableLinear=Linear
torch.nn.modules.module: <nn.module> _IncompatibleKeys <compatibility.helpers> _addindent
  _EXTRA_STATE_KEY_SUFFIX _global_parameter_registration_hooks
torch.nn.modules.transformer: <compatibility.helpers> _get_activation_fn
torch.nn.modules: <compatibility.parallel> DataParallel <nn.*> container=containers
  <nn.containers> ModuleDict ModuleList ParameterDict ParameterList Sequential <nn.module>
  Module <nn.modules.*> batchnorm=normalization instancenorm=normalization module rnn=recurrent
  sparse=embedding
torch.nn.parallel.scatter_gather: <!DataParallel runs on one device> gather scatter scatter_kwargs
torch.nn.parallel: <compatibility.parallel> data_parallel DataParallel
torch.nn.quantized: <!quantized> BatchNorm2d FloatFunctional
torch.nn.utils._named_member_accessor: <!use func.functional_call> swap_tensor
torch.nn.utils._per_sample_grad: <!use func.vmap of func.grad> call_for_per_sample_grads
torch.nn: <compatibility.parallel> DataParallel <nn.*> parallel
torch.numa.binding: <!the system places processes> AffinityMode NumaOptions
torch.onnx.symbolic_helper: <inert> parse_args=decorator <!export> cast_pytorch_to_onnx _get_const
  scalar_type_to_onnx _unimplemented
torch.onnx.symbolic_opset11: <!export> select squeeze unsqueeze
torch.onnx.symbolic_opset9: <!export> masked_fill softmax
torch.onnx.utils: <!export> _export export _model_to_graph register_custom_op_symbolic
torch.onnx: <!flow.onnx.export writes files; register_op gives an op of your own> dynamo_export
  ONNXProgram OperatorExportTypes TrainingMode <inert> register_custom_op_symbolic=none
  unregister_custom_op_symbolic=none
torch.optim.adagrad: <compatibility.optim> adadelta adagrad rmsprop
torch.optim.adam: <compatibility.optim> adam adamax adamw nadam radam
torch.optim.lr_scheduler: <compatibility.optim> _enable_get_lr_call EPOCH_DEPRECATION_WARNING
  _warn_get_lr_called_within_step
torch.optim.muon: <compatibility.optim> adafactor
torch.optim.optimizer: <compatibility.optim> _capturable_doc _default_to_fused_or_foreach
  _differentiable_doc _disable_dynamo_if_unsupported _dispatch_sqrt _foreach_doc _fused_doc
  _get_capturable_supported_devices _get_scalar_dtype _get_value _maximize_doc OptimizerPostHook
  OptimizerPreHook _params_doc _params_t params_t ParamsT _stack_if_compiling StateDict _to_scalar
  _use_grad_for_differentiable _view_as_real
torch.optim.sgd: <compatibility.optim> asgd rprop sgd
torch.optim: <!gradients are dense; use Adam> SparseAdam <*> _multi_tensor=optim <compatibility.*>
  _functional=optim <optim.*> adadelta=adagrad _adafactor=muon adamax=adam adamw=adam asgd=sgd
  _muon=muon nadam=adam radam=adam rmsprop=adagrad rprop=sgd
torch.overrides: <inert> enable_reentrant_dispatch=context has_torch_function=no
  has_torch_function_unary=no has_torch_function_variadic=no <compatibility.helpers>
  is_tensor_like <!modes> BaseTorchFunctionMode _get_current_function_mode_stack
  get_default_nowrap_functions get_ignored_functions get_overridable_functions
  get_testing_overrides handle_torch_function is_tensor_method_or_property resolve_name
  TorchFunctionMode
torch.package: <!install the code, and use flow.save> Importer PackageExporter PackageImporter
  sys_importer
torch.profiler.profiler: <!use profiler.schedule> _default_schedule_fn
torch.profiler: <compatibility.helpers> kineto_available=yes
torch.quantization.fake_quantize: <!quantized> FakeQuantize
torch.quantization.observer: <!quantized> HistogramObserver MinMaxObserver
  PerChannelMinMaxObserver
torch.quantization.qconfig: <!quantized> QConfig
torch.quantization: <!quantized> convert default_observer DeQuantStub FakeQuantizeBase
  get_default_qconfig MinMaxObserver ObserverBase prepare prepare_qat QConfig quantize_dynamic
  QuantStub
torch.return_types: <compatibility.helpers> cummax cummin max min sort topk
torch.serialization: <compatibility.helpers> DEFAULT_PROTOCOL MAP_LOCATION <inert>
  add_safe_globals=none clear_safe_globals=none
  get_safe_globals=empty safe_globals=context <!flow.load reads tensors and
  plain containers> get_unsafe_globals_in_checkpoint location_tag
  normalize_storage_type
torch.sparse: <inert> check_sparse_tensor_invariants=context <!sparse> softmax spdiags
torch.storage: <interop.storages> TypedStorage UntypedStorage
torch.torch_version: <compatibility.helpers> TorchVersion
torch.types: <compatibility.types> _bool Device _device _dtype _float _int Number _size Storage
  _TensorOrTensors
torch.utils._contextlib: <:contextlib> _DecoratorContextManager=ContextDecorator
torch.utils._device: <!modes> DeviceContext
torch.utils._foreach_utils: <compatibility.helpers>
  _group_tensors_by_device_and_dtype=grouped_tensors
torch.utils._python_dispatch: <inert> _disable_current_modes=context
  _get_current_dispatch_mode=none is_traceable_wrapper_subclass=no <!modes> _pop_mode_temporarily
  TorchDispatchMode
torch.utils._pytree: <!export> treespec_dumps treespec_loads
torch.utils._sympy.numbers: <!symbolic> IntInfinity
torch.utils._sympy.value_ranges: <!symbolic> ValueRanges
torch.utils.checkpoint: <compatibility.helpers> get_device_states set_device_states
torch.utils.cpp_extension: <compatibility.helpers> CUDA_HOME <!build> BuildExtension CppExtension
  CUDAExtension _get_build_directory load load_inline
torch.utils.data._utils.collate: <compatibility.helpers> np_str_obj_array_pattern
torch.utils.data._utils.pin_memory: <inert> pin_memory=first
torch.utils.data._utils.worker: <compatibility.helpers> _generate_state
torch.utils.data.dataloader: <:typing> _collate_fn_t=Callable _worker_init_fn_t=Callable
torch.utils.data.datapipes.iter.combinatorics: <!pipes> ShufflerIterDataPipe
torch.utils.data.datapipes.iter: <!pipes> Batcher
torch.utils.data.datapipes.utils.common: <!pipes> StreamWrapper
torch.utils.data.graph: <!pipes> traverse_dps
torch.utils.data.graph_settings: <!pipes> apply_random_seed apply_shuffle_settings
torch.utils.data: <inert> functional_datapipe=decorator <!pipes> IterDataPipe MapDataPipe
torch.utils.dlpack: <compatibility.helpers> to_dlpack <functors.creation> from_dlpack
torch.utils.flop_counter: <profiler.flops> FlopCounterMode
torch.utils.model_zoo: <:tqdm.auto> tqdm
torch.utils.module_tracker: <!modes> ModuleTracker
torch.utils.weak: <compatibility.helpers> WeakIdKeyDictionary
  WeakTensorKeyDictionary=WeakIdKeyDictionary
torch.utils: <compatibility.*> model_zoo=hub _pytree=pytree <utils.*> tensorboard <tensors.*> hooks
  <!exchange the values with copy_> swap_tensors
torch.xpu: <inert> current_device=none device=context device_count=zero empty_cache=none
  get_device_name=none get_rng_state=none get_rng_state_all=none is_available=no
  is_bf16_supported=no is_current_stream_capturing=no manual_seed=none manual_seed_all=none
  max_memory_allocated=zero memory_allocated=zero memory_reserved=zero
  reset_peak_memory_stats=none set_device=none set_rng_state=none set_rng_state_all=none
  synchronize=none
torch: <*> amp functional=functions functions functors futures grad_funcs kernels <utils.*>
  multiprocessing <interop.*> accelerator <compatibility.*> backends hub jit library types version
  <amp>
  autocast clear_autocast_cache get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
  GradScaler is_autocast_cpu_enabled is_autocast_enabled <interop.cuda> Event
  Stream <errors> OutOfMemoryError=DeviceError <compatibility.foreach> _foreach_abs _foreach_abs_
  _foreach_acos _foreach_acos_ _foreach_add _foreach_add_ _foreach_addcdiv _foreach_addcdiv_
  _foreach_addcmul _foreach_addcmul_ _foreach_asin _foreach_asin_ _foreach_atan _foreach_atan_
  _foreach_ceil _foreach_ceil_ _foreach_clamp_max _foreach_clamp_max_ _foreach_clamp_min
  _foreach_clamp_min_ _foreach_clone _foreach_copy_ _foreach_cos _foreach_cos_ _foreach_cosh
  _foreach_cosh_ _foreach_div _foreach_div_ _foreach_erf _foreach_erf_ _foreach_erfc
  _foreach_erfc_ _foreach_exp _foreach_exp_ _foreach_expm1 _foreach_expm1_ _foreach_floor
  _foreach_floor_ _foreach_frac _foreach_frac_ _foreach_lerp _foreach_lerp_ _foreach_lgamma
  _foreach_lgamma_ _foreach_log _foreach_log10 _foreach_log10_ _foreach_log1p _foreach_log1p_
  _foreach_log2 _foreach_log2_ _foreach_log_ _foreach_max _foreach_maximum _foreach_maximum_
  _foreach_minimum _foreach_minimum_ _foreach_mm _foreach_mul _foreach_mul_ _foreach_neg
  _foreach_neg_ _foreach_norm _foreach_pow _foreach_pow_ _foreach_powsum _foreach_reciprocal
  _foreach_reciprocal_ _foreach_round _foreach_round_ _foreach_rsqrt _foreach_rsqrt_
  _foreach_sigmoid _foreach_sigmoid_ _foreach_sign _foreach_sign_ _foreach_sin _foreach_sin_
  _foreach_sinh _foreach_sinh_ _foreach_sqrt _foreach_sqrt_ _foreach_sub _foreach_sub_
  _foreach_tan _foreach_tan_ _foreach_tanh _foreach_tanh_ _foreach_trunc _foreach_trunc_
  _foreach_zero_ <compatibility.jit> ScriptModule <compatibility.settings>
  are_deterministic_algorithms_enabled get_deterministic_debug_mode get_float32_matmul_precision
  get_num_interop_threads get_num_threads is_deterministic_algorithms_warn_only_enabled
  is_warn_always_enabled set_default_tensor_type set_deterministic_debug_mode
  set_float32_matmul_precision set_flush_denormal set_num_interop_threads set_num_threads
  set_warn_always use_deterministic_algorithms <compatibility.helpers> _assert _check=check
  _check_index=check_index _check_is_size=check_size _check_type=check_type _check_value=check_value
  get_device_module <compatibility.tensors> addmv_ bfloat16 BFloat16Storage BFloat16Tensor
  BoolStorage BoolTensor ByteStorage ByteTensor CharStorage CharTensor ComplexDoubleStorage
  ComplexDoubleTensor ComplexFloatStorage ComplexFloatTensor detach detach_ DoubleStorage
  DoubleTensor embedding_bag FloatStorage FloatTensor HalfStorage HalfTensor IntStorage IntTensor
  LongStorage LongTensor ShortStorage ShortTensor typename <interop.storages> is_storage Storage
  TypedStorage UntypedStorage <files.*> serialization <tensors.*> storage _tensor=tensor
  _tensor_str=tensor_repr <inert> is_autocast_cache_enabled=no is_vulkan_available=no
  set_autocast_cache_enabled=none <!fp8> float4_e2m1fn_x2 float8_e4m3fn float8_e4m3fnuz
  float8_e5m2 float8_e5m2fnuz float8_e8m0fnu _grouped_mm _scaled_mm <!use flow.complex64>
  complex32 <!quantized> bits16 bits1x8 bits2x4 bits4x2 bits8 fake_quantize_per_channel_affine
  fake_quantize_per_tensor_affine int1 int2 int3 int4 int5 int6 int7 per_channel_affine
  per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine per_tensor_symmetric
  qint32 qint8 qscheme quantize_per_channel quantize_per_tensor quint2x4 quint4x2 quint8 uint1
  uint2 uint3 uint4 uint5 uint6 uint7 <!nested> jagged <!sparse> sparse_bsc sparse_bsc_tensor
  sparse_bsr sparse_bsr_tensor sparse_csc sparse_csc_tensor sparse_csr sparse_csr_tensor <!script>
  CompilationUnit DeviceObjType FloatType Future=ScriptFuture PyTorchFileReader PyTorchFileWriter
  ScriptFunction ScriptObject StreamObjType TensorType <!symbolic> sym_float sym_int sym_ite
  sym_max sym_min sym_not sym_sum SymBool SymFloat SymInt <!use flow.static.nn> while_loop <!the
  ops' schemas stand in the registry> DispatchKey Tag
"""


def _read(table: str) -> Homes:
    """Return the homes of the names of each module, in the form of `ops/homes.py`."""
    found: Homes = {}
    for line in re.sub(r"\n +", " ", table).strip().split("\n"):
        path, _, rest = line.partition(": ")
        homes = found[path.removeprefix("torch").removeprefix(".")] = {}
        for home, words in re.findall("<(.*?)>([^<]*)", rest):
            if home[0] == "!":
                home = f"refused: {HINTS.get(home[1:], home[1:])}"
            homes["compatibility.inert" if home == "inert" else home] = words
    return found


NAMES = _read(TABLE)
