package mlx

import "fmt"

// KernelSource is a GPU kernel in source form: the body of a function whose inputs and outputs are pointers of the
// given names. They are MLX's custom kernels, fast.metal_kernel and fast.cuda_kernel.
type KernelSource struct {
	Name            string
	CUDA            bool // otherwise Metal
	Inputs, Outputs []string
	Source, Header  string
	AnyLayout       bool // accept inputs that are not row-contiguous
	AtomicOutputs   bool // Metal: outputs are atomics
	SharedMemory    int  // CUDA: bytes per block
}

// Kernel is a compiled KernelSource. It is never freed.
type Kernel struct {
	t     *Thread
	name  string
	index int32
}

// KernelCall describes one launch.
type KernelCall struct {
	Inputs    []*Array
	Shapes    [][]int // of the outputs
	Types     []DType // of the outputs
	Grid      [3]int  // in total
	Threads   [3]int  // per threadgroup or block
	Templates []KernelTemplate
	Init      *float64 // initial value of the outputs, or nil
}

// KernelTemplate is a compile-time argument. Value is an int, a bool or a DType.
type KernelTemplate struct {
	Name  string
	Value any
}

// NewKernel prepares a kernel. It fails if the machine lacks the kind of GPU.
func NewKernel(t *Thread, source KernelSource) *Kernel {
	i, failed := cKernelNew(&source)
	t.must(prefix("NewKernel", failed))
	return &Kernel{t: t, name: source.Name, index: i}
}

// Call launches the kernel and returns its outputs.
func (k *Kernel) Call(l KernelCall) []*Array {
	if len(l.Shapes) != len(l.Types) {
		panic(&Error{Message: fmt.Sprintf("kernel %s: %d shapes and %d types", k.name, len(l.Shapes), len(l.Types))})
	}
	k.t.frame.reset()
	c := call{t: k.t}
	c.arrays(l.Inputs)
	for _, n := range append(l.Grid[:], l.Threads[:]...) {
		c.int(n)
	}
	c.int(len(l.Shapes))
	for i, shape := range l.Shapes {
		c.dtype(l.Types[i])
		c.ints(shape)
	}
	names := k.templates(c, l.Templates)
	c.bool(l.Init != nil)
	if l.Init != nil {
		c.real(*l.Init)
	}
	k.t.must(prefix("kernel "+k.name, cKernelCall(k.index, k.t.frame, names)))
	var out []*Array
	for i := range k.t.frame.results() {
		out = append(out, k.t.adopt(&k.t.frame.results()[i]))
	}
	return out
}

func (k *Kernel) templates(c call, list []KernelTemplate) (names []string) {
	c.int(len(list))
	for _, a := range list {
		names = append(names, a.Name)
		switch v := a.Value.(type) {
		case int:
			c.int(0)
			c.int(v)
		case bool:
			c.int(1)
			c.bool(v)
		case DType:
			c.int(2)
			c.dtype(v)
		default:
			panic(&Error{Message: fmt.Sprintf("kernel %s: template %s is a %T", k.name, a.Name, v)})
		}
	}
	return names
}
