package export

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ingotml/ingot/arch"
	mapping "github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/chat"
	"github.com/ingotml/ingot/convert/gguf"
	"github.com/ingotml/ingot/convert/source"
	"github.com/ingotml/ingot/convert/write"
	"github.com/ingotml/ingot/internal/atomicfile"
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
	"github.com/ingotml/ingot/manifest/store/disk"
	"github.com/ingotml/ingot/quantize/ggml"
)

// GGUFTypes lists the types of [GGUFOptions].
var GGUFTypes = []string{"source", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "MXFP4"}

// GGUFOptions control how a model is written as a GGUF file.
type GGUFOptions struct {
	// Type is that of the matrices, one of GGUFTypes. With "source" or "", each keeps its type: codes that a type of GGUF
	// holds exactly are not changed, and the others are dequantized.
	Type     string
	Progress func(write.Event) // called after each tensor
}

// GGUF writes a model in the store as a GGUF file for llama.cpp. The file must not exist; it appears when it is
// complete.
func GGUF(ctx context.Context, st *store.Store, entry *store.Entry, path string, opts GGUFOptions) (Result, error) {
	kind, err := parseGGUFType(opts.Type)
	if err != nil {
		return Result{}, err
	}
	if _, err := os.Lstat(path); err == nil {
		return Result{}, fmt.Errorf("%s: %w: it exists; remove it, or give another name", path, ErrExport)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return Result{}, err
	}
	release, err := st.Lock(ctx) // keeps a collection from removing the blobs
	if err != nil {
		return Result{}, err
	}
	defer release()
	if err := st.CheckPresent(entry, true); err != nil {
		return Result{}, err
	}
	src, err := source.OpenImage(ctx, st, entry, source.Options{})
	if err != nil {
		return Result{}, err
	}
	texts, err := settings.Read(st, entry)
	if err != nil {
		return Result{}, err
	}
	x := &ggufFile{src: src, kind: kind}
	if err := x.plan(entry.Name.String(), texts.Templates.All()); err != nil {
		return Result{}, fmt.Errorf("%s: %w", src.From, err)
	}
	err = atomicfile.Write(path, 0o644, func(f *os.File) error { return x.write(ctx, f, opts.Progress) })
	if err != nil {
		return Result{}, fmt.Errorf("export to %s: %w", path, write.Explain(err))
	}
	out := Result{Dir: path, Files: []string{filepath.Base(path)}, Tensors: len(x.tensors), Notes: x.notes}
	for _, t := range x.tensors {
		out.Bytes += t.bytes()
	}
	return out, nil
}

// parseGGUFType returns a type of GGUFTypes; F32 stands for the source's.
func parseGGUFType(name string) (ggml.Type, error) {
	if name == "" || strings.EqualFold(name, GGUFTypes[0]) {
		return ggml.F32, nil
	}
	for _, t := range []ggml.Type{ggml.F16, ggml.BF16, ggml.Q8_0, ggml.Q4_0, ggml.Q4_1, ggml.MXFP4} {
		if strings.EqualFold(name, t.String()) {
			return t, nil
		}
	}
	return 0, fmt.Errorf("%w: type %s: want %s", ErrExport, name, strings.Join(GGUFTypes, ", "))
}

// ggufFile is the planned contents of a file.
type ggufFile struct {
	src      *source.Source
	kind     ggml.Type // of matrices; F32 = the source's
	metadata []gguf.Pair
	tensors  []ggufTensor
	notes    []string

	stored map[string]*storedTensor
	wider  int // matrices whose codes no type holds
}

// ggufTensor is a tensor of the file.
type ggufTensor struct {
	gguf.Tensor
	from arrayReader
	data []byte // instead of from
	// Instead of from: computes the tensor when it is written.
	compute func(ctx context.Context) ([]byte, error)
	// Where the converter moves them: the row of the file for each row of the model, and the same of blocks of columns.
	rows, blocks []int64
}

func (t ggufTensor) bytes() int64 {
	block, size := t.Type.Block()
	n := int64(size)
	for _, d := range t.Shape {
		n *= d
	}
	return n / int64(block)
}

func (x *ggufFile) plan(name string, templates []chat.Named) error {
	if _, err := x.src.Match(); err != nil {
		return err
	}
	g, header, err := arch.GGUFOf(x.src.Model)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrExport, err)
	}
	x.metadata = modelPairs(g, header, name)
	tokens, notes, err := tokenizerPairs(x.src, g, templates)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrExport, err)
	}
	x.metadata, x.notes = append(x.metadata, tokens...), append(x.notes, notes...)
	for _, name := range slices.Sorted(maps.Keys(header.Factors)) {
		list := header.Factors[name]
		raw := make([]byte, 4*len(list))
		if err := ggml.F32.Encode(raw, list); err != nil {
			return err
		}
		x.tensors = append(x.tensors, ggufTensor{data: raw, Tensor: gguf.Tensor{
			Name: name, Type: ggml.F32, Shape: []int64{int64(len(list))},
		}})
	}
	if x.src.Draft != nil {
		x.notes = append(x.notes, "the draft model is left out")
	}
	config, _ := x.src.File(source.ConfigName)
	if err := x.addAll(g, config.Data); err != nil {
		return err
	}
	lost, err := arch.CheckGGUF(g, x.src.Model, written{x, header.Factors})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrExport, err)
	}
	for _, what := range lost {
		x.notes = append(x.notes, "GGUF cannot say "+what)
	}
	if x.wider > 0 {
		x.notes = append(x.notes, fmt.Sprintf("no type of GGUF holds the codes of %d tensors: they are dequantized; "+
			"--type Q8_0 makes the file smaller", x.wider))
	}
	return nil
}

// written is what the file will say, as an import reads it.
type written struct {
	*ggufFile
	factors map[string][]float32
}

// Value implements [mapping.File].
func (w written) Value(key string) (any, bool) {
	for _, p := range w.metadata {
		if p.Key == key {
			return p.Value.Plain(), true
		}
	}
	return nil, false
}

// Shape implements [mapping.File].
func (w written) Shape(name string) ([]int64, bool) {
	for _, t := range w.tensors {
		if t.Name == name {
			return t.Shape, true
		}
	}
	return nil, false
}

// Floats implements [mapping.File].
func (w written) Floats(name string) ([]float32, error) {
	list, ok := w.factors[name]
	if !ok {
		return nil, fmt.Errorf("%w: there is no tensor %s", mapping.ErrMetadata, name)
	}
	return list, nil
}

// write writes the file and makes it durable.
func (x *ggufFile) write(ctx context.Context, f *os.File, progress func(write.Event)) error {
	total := write.Event{TotalTensors: len(x.tensors)}
	for _, t := range x.tensors {
		total.TotalBytes += t.bytes()
	}
	p := write.NewProgress(total, progress)
	var list []gguf.Tensor
	for _, t := range x.tensors {
		list = append(list, t.Tensor)
	}
	var last io.Closer
	closeLast := func() {
		if last != nil {
			_ = last.Close()
		}
		last = nil
	}
	defer func() { closeLast() }()
	err := gguf.Write(f, x.metadata, list, func(i int) (io.Reader, error) {
		closeLast()
		if i > 0 {
			p.Add(0, 1)
		}
		t := x.tensors[i]
		if t.compute != nil {
			data, err := t.compute(ctx)
			return bytes.NewReader(data), err
		}
		if t.data != nil {
			return bytes.NewReader(t.data), nil
		}
		stream, err := t.from.open(ctx)
		if err != nil {
			return nil, err
		}
		last = stream
		if t.rows == nil && t.blocks == nil {
			return countingReader{stream, p}, nil
		}
		return move(countingReader{stream, p}, t)
	})
	if err != nil {
		return err
	}
	p.Add(0, 1)
	return disk.Sync(f)
}

// move reads a tensor and returns its rows and blocks of columns in the order of the file.
func move(r io.Reader, t ggufTensor) (io.Reader, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if t.rows != nil {
		data = reordered(data, t.rows)
	}
	if t.blocks != nil {
		size := len(data) / int(t.Shape[0])
		for at := 0; at < len(data); at += size {
			copy(data[at:], reordered(data[at:at+size], t.blocks))
		}
	}
	return bytes.NewReader(data), nil
}

// reordered moves piece i of len(order) equal pieces to order[i].
func reordered(data []byte, order []int64) []byte {
	out := make([]byte, len(data))
	size := len(data) / len(order)
	for i, to := range order {
		copy(out[int(to)*size:(int(to)+1)*size], data[i*size:])
	}
	return out
}

// isMatrix reports whether llama.cpp reads a tensor in any type. Others have to be F32.
func isMatrix(t gguf.Tensor) bool {
	return len(t.Shape) > 1 && !slices.ContainsFunc([]string{
		".ffn_gate_inp.weight", ".ffn_gate_inp_shexp.weight", ".indexer.proj.weight", ".ssm_conv1d.weight",
		".shortconv.conv.weight", "_norm.weight", "position_embd.weight",
	}, func(end string) bool { return strings.HasSuffix(t.Name, end) })
}

// isEnd reports whether a tensor is the embedding or the head.
func isEnd(name string) bool {
	return slices.Contains([]string{"token_embd.weight", "output.weight"}, name)
}
