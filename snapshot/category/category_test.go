package category

import (
	"slices"
	"strings"
	"testing"

	"github.com/memdiag/memdiag/snapshot"
)

// frames are written as "function file", innermost first; torch/ stands for an installed PyTorch.
func frames(texts ...string) []snapshot.Frame {
	var out []snapshot.Frame
	for _, text := range texts {
		i := strings.LastIndexByte(text, ' ')
		file := text[i+1:]
		if strings.HasPrefix(file, "torch/") {
			file = "/venv/torch/lib/python3.12/site-packages/" + file
		}
		out = append(out, snapshot.Frame{Function: text[:i], File: file})
	}
	return out
}

func TestPhasesOfStacks(t *testing.T) {
	const (
		call    = "Module._call_impl torch/nn/modules/module.py"
		engine  = "_engine_run_backward torch/autograd/graph.py"
		bmm     = "torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>&&) ??"
		loader  = "_SingleProcessDataLoaderIter._next_data torch/utils/data/dataloader.py"
		wrapper = "Optimizer.profile_hook_step.<locals>.wrapper torch/optim/optimizer.py"
		train   = "train /home/me/train.py"
	)
	for name, c := range map[string]struct {
		stack []string
		want  phase
	}{
		"a layer":                                          {[]string{"Linear.forward torch/nn/modules/linear.py", call, train}, forward},
		"a module of the user's":                           {[]string{"forward /home/me/model.py", call, train}, forward},
		"the user's own code":                              {[]string{"loss /home/me/train.py", train}, elsewhere},
		"a backward pass with Python's frames":             {[]string{engine, "backward torch/autograd/__init__.py", "Tensor.backward torch/_tensor.py", train}, backward},
		"one in autograd's thread":                         {[]string{"at::_ops::bmm::call(at::Tensor const&) ??", bmm}, backward},
		"a node of a custom function":                      {[]string{"Square.backward /home/me/ops.py", "BackwardCFunction.apply torch/autograd/function.py", engine, train}, backward},
		"the forward pass of one":                          {[]string{"Square.forward /home/me/ops.py", "Function.apply torch/autograd/function.py", "forward /home/me/m.py", call, train}, forward},
		"what checkpointing computes anew":                 {[]string{"Linear.forward torch/nn/modules/linear.py", call, "recompute_fn torch/utils/checkpoint.py", engine, train}, forward},
		"what a forward pass records for autograd":         {[]string{"torch::autograd::VariableType::(anonymous namespace)::bmm(at::Tensor const&) ??", "forward /home/me/m.py", call, train}, forward},
		"the state of an optimizer":                        {[]string{"Adam._init_group torch/optim/adam.py", wrapper, train}, updating},
		"an optimizer of the user's":                       {[]string{"step /home/me/adamw.py", wrapper, train}, updating},
		"a closure of an optimizer's":                      {[]string{"Linear.forward torch/nn/modules/linear.py", call, "closure /home/me/train.py", "LBFGS.step torch/optim/lbfgs.py", wrapper, train}, forward},
		"gradients that are set to zero":                   {[]string{"Optimizer.zero_grad torch/optim/optimizer.py", train}, elsewhere},
		"a batch":                                          {[]string{"default_collate torch/utils/data/_utils/collate.py", loader, train}, loading},
		"a batch that a module transforms":                 {[]string{"Resize.forward /venv/site-packages/torchvision/transforms.py", call, loader, train}, loading},
		"a layer that is made":                             {[]string{"Linear.__init__ torch/nn/modules/linear.py", "__init__ /home/me/model.py", train}, building},
		"one that is moved":                                {[]string{"Module.to.<locals>.convert torch/nn/modules/module.py", "Module._apply torch/nn/modules/module.py", "Module.to torch/nn/modules/module.py", train}, building},
		"a workspace of cuBLAS":                            {[]string{"at::cuda::getNewWorkspace() ??", "Linear.forward torch/nn/modules/linear.py", call, train}, scratch},
		"a collective":                                     {[]string{"c10d::ProcessGroupNCCL::allgather(std::vector<at::Tensor>&) ??", "all_gather torch/distributed/distributed_c10d.py", train}, exchanging},
		"the state of an optimizer of DTensors":            {[]string{"OpDispatcher.dispatch torch/distributed/tensor/_dispatch.py", "DTensor.__torch_dispatch__ torch/distributed/tensor/_api.py", "Adam._init_group torch/optim/adam.py", wrapper, train}, updating},
		"a layer of DTensors":                              {[]string{"dispatch torch/distributed/_tensor/dispatch.py", "Linear.forward torch/nn/modules/linear.py", call, train}, forward},
		"a collective of DTensors":                         {[]string{"all_gather_tensor torch/distributed/_functional_collectives.py", "redistribute_local_tensor torch/distributed/tensor/_redistribute.py", "Linear.forward torch/nn/modules/linear.py", call, train}, exchanging},
		"a project of the user's in a folder called torch": {[]string{"step /home/me/torch/optim/run.py"}, elsewhere},
		"a clone of PyTorch":                               {[]string{"step /src/pytorch/torch/optim/sgd.py", train}, updating},
		"no frames":                                        {nil, elsewhere},
	} {
		if got := phaseOf(frames(c.stack...)); got != c.want {
			t.Errorf("%s: phase %d, want %d", name, got, c.want)
		}
	}
}

// sample has a block for each of the stacks, live on one device.
func sample(producer string, kind snapshot.DeviceKind, all ...[]snapshot.Frame) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Producer: producer, Stacks: snapshot.NewStacks(), Devices: []snapshot.Device{{Kind: kind}}}
	s.Segments = []snapshot.Segment{{NumBlocks: len(all)}}
	for _, f := range all {
		s.Blocks.Segment = append(s.Blocks.Segment, 0)
		s.Blocks.Address = append(s.Blocks.Address, uint64(512*s.Blocks.Len()))
		s.Blocks.Size = append(s.Blocks.Size, 512)
		s.Blocks.Requested = append(s.Blocks.Requested, 500)
		s.Blocks.State = append(s.Blocks.State, snapshot.Live)
		s.Blocks.Stack = append(s.Blocks.Stack, s.Stacks.InternFrames(f))
	}
	return s
}

var (
	layer  = frames("Linear.forward torch/nn/modules/linear.py", "Module._call_impl torch/nn/modules/module.py", "train /t.py")
	moment = frames("Adam._init_group torch/optim/adam.py", "wrapper torch/optim/optimizer.py", "train /t.py")
	grad   = frames("_engine_run_backward torch/autograd/graph.py", "train /t.py")
	batch  = frames("collate torch/utils/data/_utils/collate.py", "train /t.py")
	made   = frames("Linear.__init__ torch/nn/modules/linear.py", "train /t.py")
	own    = frames("train /t.py")
)

func TestCategories(t *testing.T) {
	foreign := func() *snapshot.Snapshot {
		return sample("PyTorch", snapshot.CUDA, layer, moment, grad, batch, made, own, nil)
	}
	told := foreign()
	told.Blocks.Category = make([]snapshot.Category, 7)
	told.Blocks.Category[5] = snapshot.Parameter
	earlier := foreign()
	earlier.Blocks.Category, earlier.Moment = told.Blocks.Category, &snapshot.Moment{}
	moments := foreign()
	moments.Blocks.Category = make([]snapshot.Category, 7)
	moments.Blocks.Category[5] = snapshot.OptimizerState
	inGraph := foreign()
	inGraph.Holders = []snapshot.Holder{{Stack: inGraph.Blocks.Stack[4], Kind: "graph"}, {Stack: inGraph.Blocks.Stack[1], Kind: "list"}}
	freed := foreign()
	freed.Blocks.State[0], freed.Blocks.State[1] = snapshot.Free, snapshot.Pending
	owned := sample("memdiag engine", snapshot.Vulkan, own, own, own, own, own, own, layer)
	owned.Blocks.Owners = []snapshot.Owners{
		snapshot.OwnedByOptim | snapshot.OwnedByUser, snapshot.OwnedByGrad, snapshot.OwnedByTape, snapshot.OwnedByTape | snapshot.OwnedByUser, snapshot.OwnedByComm, snapshot.OwnedByCache, 0,
	}
	for name, c := range map[string]struct {
		s    *snapshot.Snapshot
		want string
	}{
		"by stacks": {foreign(), "activation, optimizer state, gradient, input, parameter, , "},
		"what a recorder that knew the model did not name is no parameter": {told, "activation, optimizer state, gradient, input, , parameter, "},
		"but it may have been at an earlier moment":                        {earlier, "activation, optimizer state, gradient, input, parameter, parameter, "},
		"nor a moment, if it knew the optimizer":                           {moments, "activation, , gradient, input, parameter, optimizer state, "},
		"what a graph holds is an activation":                              {inGraph, "activation, optimizer state, gradient, input, activation, , "},
		"of live blocks":                                                   {freed, ", , gradient, input, parameter, , "},
		"by owners":                                                        {owned, "optimizer state, gradient, activation, , collective, cache, "},
		"none of another framework":                                        {sample("JAX", snapshot.CUDA, layer, moment), ""},
		"none of Python's heap":                                            {sample("PyTorch", snapshot.PythonHeap, layer, moment), ""},
		"none where nothing is known":                                      {sample("PyTorch", snapshot.CUDA, own, nil), ""},
		"none where there is no block":                                     {sample("PyTorch", snapshot.CUDA), ""},
	} {
		var got []string
		for _, category := range Of(c.s) {
			got = append(got, category.String())
		}
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", name, text, c.want)
		}
	}
}

func TestNamesOfCategories(t *testing.T) {
	for c := range snapshot.Category(snapshot.Categories) {
		if back, ok := snapshot.CategoryNamed(c.String()); back != c || ok == (c == snapshot.NoCategory) {
			t.Errorf("%d is named %q, which is %d, %v", c, c, back, ok)
		}
	}
	if c, ok := snapshot.CategoryNamed("none"); ok || c.String() != "" || snapshot.Category(200).String() != "" {
		t.Errorf("none is %d", c)
	}
	if got := snapshot.Owners(0).CategoryOf(); got != snapshot.NoCategory || slices.Contains(snapshot.Lost.Names(), "") {
		t.Errorf("no owner is a %q", got)
	}
}
