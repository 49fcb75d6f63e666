package checkpoint

import (
	"fmt"
	"slices"

	"github.com/ingotml/ingot/arch"
	"github.com/ingotml/ingot/arch/gguf"
	"github.com/ingotml/ingot/convert/gguf/vocab"
	"github.com/ingotml/ingot/convert/packed"
	"github.com/ingotml/ingot/safetensors"
)

// Options control how a file is read.
type Options struct {
	// Exact keeps every element exactly: affine codes with float32 scales and biases where float16 ones would be rounded,
	// and float32 elements of types whose codes no format has.
	Exact bool
	// HeadersOnly reads no data of tensors: see [packed.Result.Assumed].
	HeadersOnly bool
}

// Checkpoint is an open model.
type Checkpoint struct {
	packed.Result
	Config  []byte     // config.json
	Model   arch.Model // what it describes
	Files   []File     // the tokenizer's, and the license
	Rounded []string   // weights whose scales and biases are rounded to float16
	Notes   []string   // what the metadata says and what is ignored

	options   Options
	unsampled int // tensors whose element type was not looked up (Options.HeadersOnly)
	worst     worst
	files     []*safetensors.File
}

// File is a small file that is made of metadata.
type File struct {
	Name string
	Data []byte
}

// Open opens the files of a model in a folder, as [Set] lists them.
func Open(folder safetensors.Folder, names []string, o Options) (*Checkpoint, error) {
	s, err := openSet(folder, names)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{options: o}
	for _, f := range s.files {
		c.files = append(c.files, f.File)
	}
	if err := c.read(s); err != nil {
		_ = s.close()
		return nil, err
	}
	return c, nil
}

func (c *Checkpoint) read(s *set) error {
	if err := s.checkRole(); err != nil {
		return fmt.Errorf("%s: %w", s.path(), err)
	}
	if err := s.checkCount(); err != nil {
		return fmt.Errorf("%s: %w", s.path(), err)
	}
	if err := s.checkRotated(); err != nil {
		return fmt.Errorf("%s: %w", s.path(), err)
	}
	g, err := arch.DetectGGUF(s)
	if err == nil {
		c.Config, err = g.MakeConfig(s)
	}
	if err == nil {
		c.Model, err = arch.ParseGGUF(g, c.Config)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", s.path(), err)
	}
	if err := c.weights(s, g, c.Model); err != nil {
		return err
	}
	if c.Files, err = s.texts(); err != nil {
		return fmt.Errorf("%s: %w", s.path(), err)
	}
	c.Notes = vocab.Notes(s.files[0].header.Metadata)
	c.recognize(s, g)
	if c.unsampled > 0 {
		c.Assumed = packed.Assumptions(map[string]int{packed.AssumedElements: c.unsampled})
	}
	return c.Finish()
}

// recognize describes the types of the file.
func (c *Checkpoint) recognize(s *set, g gguf.Map) {
	counts := map[string]int{}
	for _, name := range s.names {
		counts[s.tensors[name].Type.String()]++
	}
	var types []string
	for t := range counts {
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return compare(a, b)
	})
	what := "tensors of types"
	for i, t := range types {
		if i > 0 {
			what += ","
		}
		what += fmt.Sprintf(" %d %s", counts[t], t)
	}
	c.Recognized = append(c.Recognized, packed.Recognized{
		Kind: "gguf", What: what, From: []string{"general.architecture = " + g.Architecture}, Tensors: len(s.names),
	})
}

func compare(a, b string) int {
	if a < b {
		return -1
	}
	return 1
}

// Rounding returns the largest error that float16 scales have caused in any element that was read so far.
func (c *Checkpoint) Rounding() float64 { return c.worst.get() }

// Sources returns the open files.
func (c *Checkpoint) Sources() []*safetensors.File { return c.files }
